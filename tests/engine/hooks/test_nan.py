import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import logits_of, make_estimator, train_input_fn

import tpu_estimator_compat as tpu


@pytest.mark.parametrize("use_tpu", [False, True])
def test_the_error_notes_the_step(tmp_path, use_tpu):
    def model_fn(features, labels, mode, params):
        step = tf.train.get_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        loss += tf.where(step >= 4, float("nan"), 0.0)
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, global_step=step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during") as caught:
        make_estimator(tmp_path, model_fn, use_tpu=use_tpu).train(train_input_fn, steps=50)
    [note] = caught.value.__notes__
    assert note.startswith("The loss of step 5 is NaN.")


def test_an_infinite_loss_ends_no_run(tmp_path):
    """A hook gets control when it asked for it, and reads what was before that step."""

    class EveryTenth(tf.train.SessionRunHook):
        def begin(self):
            [hidden] = [v for v in tf.global_variables() if v.op.name == "hidden"]
            self._fetches = [tf.train.get_global_step(), hidden]

        def steps_until_control(self, global_step):
            return 10 - global_step % 10

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self._fetches)

        def after_run(self, run_context, run_values):
            seen.append(int(run_values.results[0]))

    def model_fn(features, labels, mode, params):
        step = tf.train.get_global_step()
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        loss += tf.where(tf.equal(step, 8), float("inf"), 0.0)  # in the last step but one
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    seen = []
    make_estimator(tmp_path, model_fn).train(train_input_fn, hooks=[EveryTenth()], steps=30)
    assert seen == [0, 2, 9, 19, 29]
