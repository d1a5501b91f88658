"""What only a session has: `auto` takes sessions for it, so all must be as in the original."""

import numpy as np
import tensorflow.compat.v1 as tf
from scenarios import models
from support.sides.races import early_reads
from tensorflow.python.debug.wrappers import hooks as debuggers
from tensorflow.python.ops import data_flow_ops, gen_sdca_ops


def _numbers(start=0):
    def input_fn():
        data = tf.data.Dataset.range(start, start + 9)
        return data.map(lambda i: tf.cast(i, tf.float32) / 8.0)

    return input_fn


def _train(model_dir, record, model, hooks=(), steps=3, times=1, evaluates=False):
    """Trains; `model` takes features, and returns a loss and what runs before the update."""
    calls = []

    def model_fn(features, labels, mode):
        calls.append(mode)
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        loss, before = model(w, features)
        with tf.control_dependencies([before, *early_reads()]):
            train_op = models.descent(loss)
        metrics = {"seen": tf.metrics.mean(loss)}
        predictions = {"loss": tf.reshape(loss, [1])}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)

    est = models.estimator(model_dir, model_fn)
    for i in range(times):
        est.train(_numbers(i), hooks=list(hooks), steps=steps)
        record("w", est.get_variable_value("w"))
    if evaluates:
        record("evaluated", est.evaluate(_numbers(), steps=2))
        record("predicted", [p["loss"] for p in est.predict(_numbers())][:2])
    record("calls", calls)


class _Fill(tf.train.SessionRunHook):
    """Puts an element into an area before the first step."""

    def __init__(self, record):
        self.record = record

    def after_create_session(self, session, coord):
        del coord
        self.record("size", session.run("size:0"))
        session.run("put")


def _staged(area, put, take):
    def model(w, features):
        tf.group(put(area, features), name="put")
        tf.identity(area.size(), name="size")
        taken = take(area)
        with tf.control_dependencies([taken]):
            then = tf.group(put(area, features))
        return tf.square(w - taken), then

    return model


def staging_area(model_dir, record):
    def model(w, features):
        area = data_flow_ops.StagingArea([tf.float32], [[]])
        return _staged(area, lambda a, x: a.put([x]), lambda a: a.get()[0])(w, features)

    _train(model_dir, record, model, [_Fill(record)], times=2)


def map_staging_area(model_dir, record):
    def model(w, features):
        area = data_flow_ops.MapStagingArea([tf.float32], [[]], ordered=True)
        key = tf.cast(features * 8.0, tf.int64)
        return _staged(area, lambda a, x: a.put(key, [x], [0]), lambda a: a.get()[1][0])(
            w, features
        )

    _train(model_dir, record, model, [_Fill(record)], times=2)


def accumulator_of_refs(model_dir, record):
    tf.disable_v2_behavior()
    accumulator(model_dir, record)


def accumulator(model_dir, record):
    def model(w, features):
        held = tf.ConditionalAccumulator(tf.float32, shape=[])
        step = tf.train.get_global_step()
        with tf.control_dependencies([held.apply_grad(features, local_step=step)]):
            taken = held.take_grad(1)
        return tf.square(w - taken), taken

    _train(model_dir, record, model, times=2)


def sparse_accumulator(model_dir, record):
    def model(w, features):
        held = tf.SparseConditionalAccumulator(tf.float32, shape=[3])
        step = tf.train.get_global_step()
        values = tf.reshape(features, [1])
        given = held.apply_grad(tf.constant([1], tf.int64), values, local_step=step)
        with tf.control_dependencies([given]):
            taken = held.take_indexed_slices_grad(1)
        return tf.square(w - tf.reduce_sum(taken.values)), taken.values.op

    _train(model_dir, record, model, times=2)


def barrier(model_dir, record):
    def model(w, features):
        held = data_flow_ops.Barrier([tf.float32], [[]])
        key = tf.as_string(tf.reshape(features, [1]))
        with tf.control_dependencies([held.insert_many(0, key, tf.reshape(features, [1]))]):
            _, _, (taken,) = held.take_many(1)
        return tf.square(w - tf.reduce_sum(taken)), taken

    _train(model_dir, record, model, times=2, evaluates=True)


def operation_on_refs_alone(model_dir, record):
    tf.disable_v2_behavior()

    def model(w, features):
        weights = tf.get_variable("weights", [2], initializer=tf.ones_initializer())
        shrunk = gen_sdca_ops.sdca_shrink_l1([weights], 0.1, 1.0)
        with tf.control_dependencies([shrunk]):
            return tf.square(w - features) * tf.reduce_sum(tf.identity(weights)), shrunk

    _train(model_dir, record, model, times=2)


class _InParts(tf.train.SessionRunHook):
    def __init__(self, record):
        self.record = record

    def after_create_session(self, session, coord):
        del coord
        graph = session.graph
        x, y, z = (graph.get_tensor_by_name(f"{name}:0") for name in ("x", "y", "z"))
        handle = session.partial_run_setup([y, z], [x])
        self.record("parts", session.partial_run(handle, y, {x: 2.0}))
        self.record("parts", session.partial_run(handle, z))


def partial_run(model_dir, record):
    def model(w, features):
        y = tf.multiply(tf.placeholder(tf.float32, [], "x"), w, name="y")
        tf.add(y, 1.0, name="z")
        return tf.square(w - features), features

    _train(model_dir, record, model, [_InParts(record)])


def partial_run_of_1(model_dir, record):
    tf.disable_v2_behavior()
    partial_run(model_dir, record)


def debugger(model_dir, record):
    def model(w, features):
        return tf.square(w - features, name="watched"), features

    dumps = f"{model_dir}/dumps"
    _train(model_dir, record, model, [debuggers.DumpingDebugHook(dumps)])
    found = tf.io.gfile.glob(f"{dumps}/*/*/watched_*")
    record("dumps", len(found) > 0, len(tf.io.gfile.listdir(dumps)))
    tf.io.gfile.rmtree(dumps)


def barrier_closed_by_a_hook(model_dir, record):
    """Errors of such operations: the step waits for what never comes, and a hook cancels it."""

    class Closes(tf.train.SessionRunHook):
        def before_run(self, context):
            context.session.run("close")

    def model(w, features):
        held = data_flow_ops.Barrier([tf.float32], [[]], name="held")
        tf.group(held.close(cancel_pending_enqueues=True), name="close")
        _, _, (taken,) = held.take_many(1)
        return tf.square(w - tf.reduce_sum(taken)), taken

    _train(model_dir, record, model, [Closes()])


def summaries_and_hooks_of_every_kind(model_dir, record):
    """A whole call: saver, summaries, logs, listeners and hooks are due at the same steps."""

    class Notes(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            record("saved", global_step_value)

    class Sees(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs(["loss:0", tf.train.get_global_step()])

        def after_run(self, context, values):
            record("ran", values.results)

    def model_fn(features, labels, mode):
        w = models.weight()
        area = data_flow_ops.StagingArea([tf.float32], [[]])
        with tf.control_dependencies([area.put([features])]):
            taken = tf.identity(area.get()[0])
        loss = tf.identity(tf.square(w - taken), "loss")
        tf.summary.scalar("taken", taken)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    est = models.estimator(
        model_dir,
        model_fn,
        save_checkpoints_steps=2,
        save_summary_steps=2,
        log_step_count_steps=2,
    )
    est.train(_numbers(), hooks=[Sees()], steps=5, saving_listeners=[Notes()])
    record(est.get_variable_value("w"))
    with_arrays = np.arange(3, dtype=np.float32)
    est.train(lambda: tf.data.Dataset.from_tensor_slices(with_arrays), max_steps=7)


def state_beside_a_branch_of_1(model_dir, record):
    """Steps run it: its branch was built for steps before the operation was found."""
    tf.disable_v2_behavior()

    def model(w, features):
        held = tf.SparseConditionalAccumulator(tf.float32, shape=[3])
        step = tf.train.get_global_step()
        chosen = tf.cond(features > 0.1, lambda: features * 2.0, lambda: features)
        values = tf.reshape(chosen, [1])
        given = held.apply_grad(tf.constant([1], tf.int64), values, local_step=step)
        with tf.control_dependencies([given]):
            taken = held.take_indexed_slices_grad(1)
        return tf.square(w - tf.reduce_sum(taken.values)), taken.values.op

    _train(model_dir, record, model)


class _Traced(tf.train.SessionRunHook):
    """Also runs a callable, and another session on the same graph."""

    def __init__(self, record):
        self.record = record

    def after_create_session(self, session, coord):
        del coord
        self.record("callable", session.make_callable("y:0", ["x:0"])(3.0))
        with tf.Session(graph=session.graph) as other:
            self.record("other", other.run("y:0", {"x:0": 5.0}))

    def before_run(self, context):
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        return tf.train.SessionRunArgs("y:0", {"x:0": 2.0}, options)

    def after_run(self, context, values):
        metadata = values.run_metadata
        self.record("partitions", len(metadata.partition_graphs))
        self.record("traced", any(d.node_stats for d in metadata.step_stats.dev_stats))
        self.record("y", values.results)


def traces_callables_and_another_session(model_dir, record):
    def model(w, features):
        tf.multiply(tf.placeholder(tf.float32, [], "x"), 2.0, name="y")
        return tf.square(w - features), features

    _train(model_dir, record, model, [_Traced(record)])
