"""What is said of a global step that stays where it is."""

from __future__ import annotations

import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu


@pytest.mark.parametrize("every", [None, 1])
def test_a_global_step_that_stays_is_told_once_more(tmp_path, caplog, every):
    """Also where no speed is logged, when TensorFlow's hook is not there to tell."""

    class Stop(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context, run_values):
            self.runs += 1
            if self.runs == 5:
                run_context.request_stop()

    def model_fn(features, labels, mode, params):
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = make_estimator(tmp_path, model_fn, log_step_count_steps=every)
    estimator.train(train_input_fn, max_steps=2, hooks=[Stop()])
    told = caplog.text.count("It seems that global step (tf.train.get_global_step) has not been")
    assert told == (1 if every is None else 4)
