import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.legacy_models import LossRecorder, logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu


def _gradient_descent(loss):
    step = tf.train.get_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)


def test_graph_seed_makes_runs_repeatable_and_steps_different(tmp_path):
    def model_fn(features, labels, mode, params):
        noisy = tf.nn.dropout(features, rate=0.5)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(noisy))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    losses = {}
    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        recorder = LossRecorder()
        estimator = make_estimator(tmp_path / name, model_fn, tf_random_seed=seed)
        estimator.train(train_input_fn, hooks=[recorder], steps=12)
        losses[name] = recorder.losses
    assert losses["one"] == losses["again"]
    assert losses["one"] != losses["other"]
    # The four batches of an epoch come again every four steps: only dropout differs.
    assert len(set(losses["one"])) == 12


@pytest.mark.parametrize("library", ["keras", "tf1"])
def test_the_seed_reaches_the_first_values_of_layers(tmp_path, library):
    import random

    import keras

    from tpu_estimator_compat import layers

    def model_fn(features, labels, mode, params):
        dense = keras.layers.Dense(3) if library == "keras" else layers.Dense(3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, dense(features))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=_gradient_descent(loss))

    def first_values(name, seed):
        estimator = make_estimator(tmp_path / name, model_fn, tf_random_seed=seed)
        estimator.train(train_input_fn, steps=1)
        return tf2.train.load_variable(str(tmp_path / name / "model.ckpt-0"), "dense/kernel")

    before = random.getstate()
    one, again, other = first_values("a", 3), first_values("b", 3), first_values("c", 4)
    assert random.getstate() == before
    np.testing.assert_array_equal(one, again)
    assert not np.allclose(one, other)
