"""`runtime="auto"` takes sessions for what only they have, unless they lack something else."""

import logging

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.judged import old_behavior
from support.legacy_models import make_estimator, train_input_fn
from tensorflow.python.ops import data_flow_ops

from tpu_estimator_compat import estimator as estimators
from tpu_estimator_compat.engine.graph import graph_ops

TAKEN = "TensorFlow's session runs the original's loop: operation 'StagingArea_put' (Stage) at "


def staging_model_fn(features, labels, mode, params):
    del labels, params
    weight = tf.get_variable("w", [], initializer=tf.ones_initializer())
    area = data_flow_ops.StagingArea([tf.float32], [[2]])
    with tf.control_dependencies([area.put([features])]):
        (taken,) = area.get()
    loss = tf.reduce_mean(tf.square(weight - taken))
    train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
    return estimators.EstimatorSpec(mode, {"taken": taken}, loss, train_op)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(np.arange(4, dtype=np.float32)).batch(2)


@pytest.fixture
def taken(caplog):
    caplog.set_level(logging.INFO, "tensorflow")
    return lambda: [line for line in caplog.messages if line.startswith(TAKEN)]


@pytest.fixture
def make(tmp_path):
    def make(**config):
        run_config = estimators.RunConfig(str(tmp_path / "model"), **config)
        return estimators.Estimator(staging_model_fn, config=run_config, params={})

    return make


def test_each_call(make, taken):
    estimator = make()
    estimator.train(input_fn, steps=2)
    assert len(taken()) == 1
    assert __file__ in taken()[0]
    assert estimator.evaluate(input_fn)["global_step"] == 2
    predicted = [float(each["taken"]) for each in estimator.predict(input_fn)]
    assert predicted == [0, 1, 2, 3]
    assert len(taken()) == 3


@pytest.mark.parametrize("config", [{"runtime": "tensorflow"}, {"jit_compile": True}])
def test_other_runtimes_do_not(make, taken, config):
    estimator = make(**config)
    assert [p["taken"] for p in estimator.predict(input_fn)] == [0, 1, 2, 3]
    assert not taken()


class Keeps(tf.train.SessionRunHook):
    """Puts two elements that nobody takes into an area of its own, which steps see, too."""

    def begin(self):
        area = data_flow_ops.StagingArea([tf.float32], [[]], shared_name="kept")
        self.put, self.size, self.sizes = area.put([tf.constant(1.0)]), area.size(), []

    def after_create_session(self, session, coord):
        self.sizes.append(int(session.run(self.size)))
        session.run(self.put)
        session.run(self.put)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.size)

    def after_run(self, run_context, run_values):
        self.sizes.append(int(run_values.results))


@pytest.mark.parametrize("use_tpu", [False, True])
def test_elements_do_not_outlive_a_call_in_steps(tmp_path, taken, use_tpu):
    estimator = make_estimator(tmp_path, use_tpu=use_tpu)
    for _ in range(2):
        estimator.train(train_input_fn, steps=2, hooks=[hook := Keeps()])
        assert hook.sizes[:2] == [0, 2]
        assert set(hook.sizes[1:]) == {2}
    assert not taken()


@pytest.mark.parametrize(
    ("kind", "of_session"),
    [
        *[
            (kind, True)
            for kind in ("Stage", "MapStage", "SparseConditionalAccumulator", "Barrier")
        ],
        *[(kind, True) for kind in ("FIFOQueue", "HashTable", "LMDBReader", "BatchFunction")],
        *[(kind, True) for kind in ("GetSessionHandleV2", "GetSessionTensor")],
        *[(kind, False) for kind in ("FIFOQueueV2", "ResourceConditionalAccumulator", "MatMul")],
        *[(kind, False) for kind in ("VariableV2", "Variable", "AddSparseToTensorsMap")],
    ],
)
def test_kernels_that_find_state_by_name(kind, of_session):
    assert graph_ops.is_of_session(kind) == of_session


def test_hooks_that_need_a_model_of_keras(make, taken):
    class Callback(keras.callbacks.Callback):
        batches = 0

        def on_predict_batch_end(self, batch, logs=None):
            self.batches += self.model is not None

    callback = Callback()
    assert len(list(make().predict(input_fn, hooks=[callback]))) == 4
    assert callback.batches == 2
    assert not taken()


def test_plain_graphs_do_not(tmp_path, taken):
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    assert not taken()


def test_device_fn(make, caplog):
    caplog.set_level(logging.INFO, "tensorflow")
    placed = []

    def device_fn(op):
        placed.append(op.name)
        return "/cpu:0"

    make(device_fn=device_fn).train(input_fn, steps=1)
    assert {"w", "global_step", "save/SaveV2"} <= set(placed)
    [line] = [each for each in caplog.messages if each.startswith("RunConfig(device_fn=...)")]
    assert "session" in line


def test_a_write_in_a_branch_is_named_where_no_session_can_run_it(tmp_path):
    def model_fn(features, labels, mode):
        del labels
        step = tf.train.get_global_step()
        weight = tf.get_variable("w", [], initializer=tf.ones_initializer())
        taken = tf.cond(step < 1, lambda: tf.assign_add(weight, 1.0), lambda: weight * 2.0)
        with tf.control_dependencies([tf.assign_add(step, 1)]):
            return estimators.EstimatorSpec(mode, loss=taken, train_op=tf.no_op())

    config = estimators.RunConfig(str(tmp_path), jit_compile=True)
    estimator = estimators.Estimator(model_fn, config=config)
    with old_behavior(), pytest.raises(NotImplementedError, match=r"cond \(If\) has a branch or b"):
        estimator.train(input_fn, steps=1)


def options():
    return tf.RunOptions(output_partition_graphs=True)


class Plain(tf.train.SessionRunHook):
    """Runs with options that it was given: the options themselves, or what makes them."""

    def __init__(self, given=options):
        self.given = given

    def before_run(self, run_context):
        given = self.given() if callable(self.given) else self.given
        return tf.train.SessionRunArgs([], options=given)

    def after_run(self, run_context, run_values):
        self.graphs = len(run_values.run_metadata.partition_graphs)


class Helped(Plain):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs([], options=options())


class Static(Plain):
    @staticmethod
    def made():
        return tf.RunOptions(output_partition_graphs=True)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([], options=self.made())


HOOKS = {"kept": lambda: Plain(options()), "given": Plain, "helped": Helped, "static": Static}


@pytest.mark.parametrize("kind", HOOKS)
def test_options_that_a_hook_has_from_elsewhere(tmp_path, kind):
    make_estimator(tmp_path).train(train_input_fn, steps=1, hooks=[hook := HOOKS[kind]()])
    assert hook.graphs


@pytest.mark.parametrize("name", ["output_partition_graphs", "timeout_in_ms", "debug_options"])
def test_options_that_steps_lack_are_refused_by_name(tmp_path, name):
    found = tf.RunOptions(**{name: {} if name == "debug_options" else 1})
    if name == "debug_options":
        found.debug_options.debug_tensor_watch_opts.add(node_name="hidden")
    with pytest.raises(NotImplementedError, match=rf"RunOptions\({name}=\.\.\.\) has no effect on"):
        make_estimator(tmp_path, use_tpu=True).train(train_input_fn, steps=1, hooks=[Plain(found)])
