import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.jax_estimators import RUNTIMES, assert_near, on, variables
from support.legacy_models import adam, logits_of, steps_done, train_input_fn

import tpu_estimator_compat as tpu


class Keeping(tf.train.CheckpointSaverListener):
    def __init__(self):
        self.seen = {}

    def before_save(self, session, global_step_value):
        names = [v.op.name for v in tf.global_variables()]
        values = session.run(tf.global_variables())
        self.seen[global_step_value] = {n: v.copy() for n, v in zip(names, values, strict=True)}


def test_checkpoints_hold_the_values_of_their_step(tmp_path):
    """Though steps go on, on the devices, while they are written."""
    listener = Keeping()
    loop = {"iterations_per_loop": 3}
    estimator = on(
        "jax", 2, tmp_path, tpu_config=loop, save_checkpoints_steps=3, keep_checkpoint_max=None
    )
    estimator.train(train_input_fn, max_steps=12, saving_listeners=[listener])
    assert sorted(listener.seen) == [0, 3, 6, 9, 12]
    for step, expected in listener.seen.items():
        reader = tf.train.load_checkpoint(str(tmp_path / f"model.ckpt-{step}"))
        assert sorted(expected) == sorted(reader.get_variable_to_shape_map())
        for name, value in expected.items():
            np.testing.assert_array_equal(reader.get_tensor(name), value, err_msg=name)


def test_variables_that_steps_do_not_write(tmp_path):
    """They are in every checkpoint; hooks and later trainings see and change them."""

    def model_fn(features, labels, mode, params):
        shift = tf.get_variable("shift", [], initializer=tf.zeros_initializer(), trainable=False)
        tf.get_variable("unused", [2], initializer=tf.ones_initializer())
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits_of(features) + shift)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss, params))

    class Shifting(tf.train.SessionRunHook):
        def begin(self):
            [shift] = [v for v in tf.global_variables() if v.op.name == "shift"]
            self._shift = shift
            self._add = tf.assign_add(shift, 1.0)
            self.seen = []

        def after_run(self, run_context, run_values):
            run_context.session.run(self._add)
            self.seen.append(float(run_context.session.run(self._shift)))

    hook = Shifting()
    estimator = on("jax", 2, tmp_path, model_fn, tpu_config={"iterations_per_loop": 2})
    estimator.train(train_input_fn, max_steps=6, hooks=[hook])
    assert hook.seen == [1.0, 2.0, 3.0]
    assert estimator.get_variable_value("shift") in (2.0, 3.0)
    np.testing.assert_array_equal(estimator.get_variable_value("unused"), [1.0, 1.0])


class Assigning(tf.train.SessionRunHook):
    """Assigns, adds to, and scatters into variables after every run; keeps what it read."""

    def __init__(self, load=False):
        self.kept = []
        self._load = load

    def begin(self):
        self._hidden, self._output = tf.trainable_variables()
        self._add = tf.assign_add(self._output, tf.ones_like(self._output) * 0.1)
        self._scatter = tf.scatter_update(self._hidden, [1], [[0.25] * 8])

    def after_run(self, run_context, run_values):
        session = run_context.session
        before = session.run([self._hidden, self._output])
        copies = [value.copy() for value in before]
        session.run(self._add)
        session.run(self._scatter)
        if self._load:
            self._output.load(session.run(self._output) * 0.5, session)
        after = session.run([self._hidden, self._output])
        expected = copies[1] + np.float32(0.1)
        np.testing.assert_allclose(after[1], expected * 0.5 if self._load else expected, 1e-6)
        np.testing.assert_array_equal(after[0][1], [0.25] * 8)
        np.testing.assert_array_equal(after[0][[0, 2, 3]], copies[0][[0, 2, 3]])
        self.kept += [(value, value.copy()) for value in (*before, *after)]


@pytest.mark.parametrize("replicas", [1, 2])
def test_hooks_that_assign_variables(tmp_path, replicas):
    """Steps go on from what they assign; what they have read stays as it was."""
    values = {}
    for runtime in RUNTIMES:
        hook = Assigning(load=replicas == 2)
        estimator = on(runtime, replicas, tmp_path / runtime, tpu_config={"iterations_per_loop": 2})
        estimator.train(train_input_fn, steps=6, hooks=[hook])
        for read, copy in hook.kept:
            np.testing.assert_array_equal(read, copy)
        values[runtime] = variables(estimator)
    assert_near(values["jax"], values["tensorflow"])


class ChangingTheStep(tf.train.SessionRunHook):
    """Sets the global step ahead once."""

    def begin(self):
        self._ahead = tf.assign(tf.train.get_global_step(), 50)

    def after_run(self, run_context, run_values):
        step = run_context.session.run(tf.train.get_global_step())
        if step == 4:
            run_context.session.run(self._ahead)


def test_a_hook_that_sets_the_global_step(tmp_path):
    estimator = on("jax", 1, tmp_path, tpu_config={"iterations_per_loop": 4})
    estimator.train(train_input_fn, max_steps=57, hooks=[ChangingTheStep()])
    assert steps_done(estimator) == 57
