"""Conformance: what host calls do, who opens and flushes summary writers, and how calls end.

The original takes the CPU for TPU code here (`use_tpu=False`); ours does, and runs it with
`use_tpu=True` besides, on one replica or two, of TensorFlow or of JAX.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support.sides.races import late_zero

BATCH = 4
STEPS = 6


def endless(params: Any) -> Any:
    return tf.data.Dataset.from_tensors(np.ones([BATCH, 1], np.float32)).repeat()


def of_batches(count: int) -> Callable[[Any], Any]:
    return lambda params: endless(params).take(count)


def _estimator(side: Any, model_dir: str, model_fn: Any, **config: Any) -> Any:
    """A TPUEstimator: on the original's CPU, and here as the side says."""
    shards = {}
    if side.replicas and side.runtime == "jax":
        config["runtime"], shards["num_shards"] = "jax", side.replicas
    elif side.replicas:
        devices = [f"/cpu:{i}" for i in range(side.replicas)]
        one = len(devices) == 1
        config["train_distribute"] = config["eval_distribute"] = (
            tf2.distribute.OneDeviceStrategy(devices[0])
            if one
            else tf2.distribute.MirroredStrategy(devices)
        )
    batch = BATCH * max(1, side.replicas)
    return tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(
            model_dir=model_dir,
            save_summary_steps=0,
            tf_random_seed=1,
            tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=4, **shards),
            **config,
        ),
        use_tpu=bool(side.replicas),
        train_batch_size=batch,
        eval_batch_size=batch,
        predict_batch_size=batch,
    )


def exchange_something(params: Any) -> None:
    """What TPU rules demand of the graph of a training."""
    if params["use_tpu"]:
        tf.tpu.cross_replica_sum(tf.zeros([]))


def minimized(loss: Any, params: Any) -> Any:
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    return optimizer.minimize(loss, tf.train.get_global_step())


def _model(host_call: Any = None, extra: Any = None) -> Any:
    """A model_fn of one weight.

    Args:
      host_call: takes tensors of shape [replicas]: the step after the update, and the loss.
      extra: takes the step; what it returns runs with train_op, or with the loss.
    """

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        weight = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
        outputs = tf.matmul(features, weight)
        loss = tf.reduce_mean(outputs)
        train_op = minimized(loss, params) if mode == "train" else tf.no_op()
        with tf.control_dependencies([train_op, loss]):
            step = tf.train.get_global_step().read_value()
        if extra is not None:
            effects = extra(step)
            train_op = tf.group(train_op, *effects)
            with tf.control_dependencies(effects if mode != "train" else []):
                loss = tf.identity(loss)
                outputs = tf.identity(outputs)
        call = None
        if host_call is not None:
            call = (host_call, [tf.reshape(step, [1]), tf.reshape(loss, [1])])
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"y": outputs}, host_call=call
        )

    return model_fn


def effects(model_dir: str, record: Any, side: Any) -> Any:
    """Branches, loops and functions in a host call: each effect once per call, where it belongs."""
    seen: list[tuple[str, int]] = []

    def effect(name: str, value: Any) -> Any:
        def note(v: Any) -> Any:
            seen.append((name, int(v)))
            return np.int64(0)

        done = tf.py_func(note, [tf.cast(value, tf.int64)], tf.int64)
        done.set_shape([])
        return done

    def host_call(step: Any, loss: Any) -> Any:
        step = step[0]
        even = tf.equal(step % 2, 0)
        count = tf.get_variable(
            "calls", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False
        )

        def returns_an_op() -> Any:
            effect("nobody asks", step)
            with tf.control_dependencies([effect("op", step)]):
                return tf.no_op()

        def nested() -> Any:
            tf.cond(even, lambda: effect("nobody asks", step), lambda: effect("nobody", step))
            return tf.cond(step > 2, lambda: effect("inner", step), lambda: effect("small", step))

        def body(i: Any) -> Any:
            odd = tf.cond(tf.equal(i % 2, 0), lambda: effect("nil", i), lambda: effect("one", i))
            effect("nobody asks", i)
            with tf.control_dependencies([odd]):
                return i + 1

        def in_a_function(value: Any) -> Any:
            effect("first", value)
            effect("second", value)
            return value

        chosen = tf.cond(even, lambda: effect("even", step), lambda: effect("odd", step))
        with tf.control_dependencies([chosen]):
            ordered = effect("after", step)
        with tf.control_dependencies([tf.while_loop(lambda i: i < 3, body, [0])]):
            after_loop = effect("after loop", step)
        returned = [
            ordered,
            tf.cond(even, returns_an_op, tf.no_op),
            tf.cond(even, nested, lambda: effect("not nested", step)),
            after_loop,
            tf.case(
                [(tf.equal(step, 1), lambda: effect("is 1", step))], lambda: effect("not 1", 0)
            ),
            tf2.function(in_a_function, autograph=False)(step),
            tf.cond(even, lambda: tf.assign_add(count, step), count.read_value),
            tf.print("at", step, output_stream=f"file://{model_dir}/printed"),
            tf.cond(
                even,
                lambda: tf.group(tf.io.write_file(f"{model_dir}/even", tf.as_string(step))),
                tf.no_op,
            ),
        ]
        effect("nobody asks", step)
        return returned

    est = _estimator(side, model_dir, _model(host_call))
    for _ in range(2):  # steps of several loops, and of a second session
        est.train(endless, steps=STEPS)
    train, seen[:] = list(seen), []
    est.evaluate(endless, steps=2)
    record("evaluate", *sorted(seen))
    order = [name for name, _ in train if name in ("even", "odd", "after")]
    loops = [name for name, _ in train if name in ("nil", "one", "after loop")]
    printed = pathlib.Path(model_dir, "printed").read_text().split("\n")[: 2 * STEPS]
    even = pathlib.Path(model_dir, "even").read_text()
    return sorted(train), order, loops, printed, even, est.get_variable_value("calls")


def summaries(model_dir: str, record: Any, side: Any) -> Any:
    _summaries(model_dir, side, in_host_call=True, init=False)


def summaries_opened_by_the_model(model_dir: str, record: Any, side: Any) -> Any:
    _summaries(model_dir, side, in_host_call=False, init=True)


def _summaries(model_dir: str, side: Any, *, in_host_call: bool, init: bool) -> None:
    def write(mode: str) -> Any:
        def of_step(step: Any, *unused: Any) -> Any:
            step = tf.reshape(step, [-1])[0]
            writer = tf2.summary.create_file_writer(f"{model_dir}/{mode}", max_queue=1000)
            opened = [writer.init()] if init else []
            with tf.control_dependencies(opened), writer.as_default():
                with tf2.summary.record_if(tf.equal(step % 2, 0)):
                    tf2.summary.scalar("seen", tf.cast(step, tf.float32) * 10, step=step)
            return tf.summary.all_v2_summary_ops()

        return of_step

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        given = {"host_call": write(mode)} if in_host_call else {"extra": write(mode)}
        return _model(**given)(features, labels, mode, params)

    est = _estimator(side, model_dir, model_fn)
    est.train(endless, steps=5)
    est.train(endless, steps=5)
    est.evaluate(endless, steps=3, name="held_out")
    list(est.predict(of_batches(3)))


def summaries_of_a_failed_training(model_dir: str, record: Any, side: Any) -> Any:
    def host_call(step: Any, loss: Any) -> Any:
        writer = tf2.summary.create_file_writer(f"{model_dir}/host", max_queue=1000)
        with writer.as_default(), tf2.summary.record_if(True):
            tf2.summary.scalar("seen", tf.cast(step[0], tf.float32), step=step[0])
        return tf.summary.all_v2_summary_ops()

    def input_fn(params: Any) -> Any:
        broken = (
            endless(params)
            .take(1)
            .map(lambda t: tf.debugging.check_numerics(t * np.float32("nan"), "broken"))
        )
        # Not the last: on several replicas that could be taken for the end of the data.
        return endless(params).take(3).concatenate(broken).concatenate(endless(params).take(2))

    est = _estimator(side, model_dir, _model(host_call))
    try:
        est.train(input_fn, steps=8)
    except tf.errors.InvalidArgumentError:
        return "failed"
    return "trained"


def without_input(model_dir: str, record: Any, side: Any) -> Any:
    """Graphs that do not look at their input: calls with a limit return."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        weight = tf.get_variable("w", [BATCH, 1], initializer=tf.ones_initializer())
        train_op = tf.assign_add(tf.train.get_global_step(), 1)
        loss = tf.reduce_sum(weight) * 0.25
        exchange_something(params)
        if mode == "train":
            train_op = tf.group(train_op, tf.assign_add(weight, tf.ones([BATCH, 1])))
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"w": weight.read_value()}
        )

    est = _estimator(side, model_dir, model_fn)
    est.train(endless, steps=3)
    est.train(endless, max_steps=5)
    record("evaluate", est.evaluate(endless, steps=3))
    record("end of the data", est.evaluate(endless, steps=2))
    predictions = est.predict(endless)
    record("predict", [next(predictions) for _ in range(5)])
    predictions.close()
    return est.get_variable_value("w"), est.get_variable_value("global_step")


def data_ends(model_dir: str, record: Any, side: Any) -> Any:
    """Effects that wait for the input, by a control dependency alone, stop with the data."""
    calls: list[str] = []

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        def call() -> Any:
            calls.append(mode)
            return np.float32(1.0)

        weight = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        with tf.control_dependencies([features]):
            train_op = tf.group(
                tf.assign_add(tf.train.get_global_step(), 1), tf.assign_add(weight, 1.0)
            )
            loss = tf.py_func(call, [], tf.float32)
            loss.set_shape([])
        exchange_something(params)
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"y": tf.fill([BATCH, 1], loss)}
        )

    est = _estimator(side, model_dir, model_fn)
    est.train(of_batches(6), steps=100)
    record("train", len(calls) // max(1, side.replicas))
    steps = None if side.replicas == 0 else 4  # a TPU wants to know
    record("evaluate", est.evaluate(of_batches(4), steps=steps))
    record("predict", len(list(est.predict(of_batches(3)))))
    record(calls.count("infer") // max(1, side.replicas))
    return est.get_variable_value("w"), est.get_variable_value("global_step")


def global_step_stays(model_dir: str, record: Any, side: Any) -> Any:
    class Stop(tf.train.SessionRunHook):
        runs = 0

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.runs += 1
            if self.runs == 20:
                run_context.request_stop()

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        weight = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.matmul(features, weight))
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss))

    est = _estimator(side, model_dir, model_fn)
    est.train(endless, max_steps=7, hooks=[Stop()])
    return est.get_variable_value("global_step")


def scaffolds(model_dir: str, record: Any, side: Any) -> Any:
    def scaffold(first: Any, bonus: Any) -> Any:
        def make() -> Any:
            return tf.train.Scaffold(
                init_feed_dict={first: np.full([1, 1], 3.0, np.float32)},
                local_init_op=tf.group(tf.assign(bonus, 7.0)),
                # The default would ask for `unused`, which nobody initializes in TRAIN.
                ready_op=tf.constant([], tf.string),
                ready_for_local_init_op=tf.constant([], tf.string),
            )

        return make

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        first = tf.placeholder(tf.float32, [1, 1])
        weight = tf.get_variable("w", initializer=first)
        bonus = tf.get_variable("bonus", [], collections=["of nobody"])
        tf.get_variable("unused", [], collections=[tf.GraphKeys.LOCAL_VARIABLES])
        outputs = tf.matmul(features, weight) + bonus
        loss = tf.reduce_mean(outputs)
        train_op = minimized(loss, params) if mode == "train" else None
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode,
            loss=loss,
            train_op=train_op,
            predictions={"y": outputs},
            eval_metrics=(lambda y: {"mean": tf.metrics.mean(y)}, [outputs]),
            scaffold_fn=scaffold(first, bonus),
        )

    est = _estimator(side, model_dir, model_fn)
    est.train(endless, steps=2)
    record("w", est.get_variable_value("w"))
    record("evaluate", est.evaluate(endless, steps=3))
    record("predict", next(est.predict(of_batches(1))))


def scaffolds_that_are_never_ready(model_dir: str, record: Any, side: Any) -> Any:
    def failing(**fields: Any) -> Any:
        def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
            loss = tf.reduce_mean(features * tf.get_variable("w", [1]))
            train_op = minimized(loss, params)
            make = {name: tf.constant([says]) for name, says in fields.items()}
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode, loss=loss, train_op=train_op, scaffold_fn=lambda: tf.train.Scaffold(**make)
            )

        return model_fn

    told = []
    for field in ("ready_op", "ready_for_local_init_op"):
        est = _estimator(side, model_dir, failing(**{field: "not me"}))
        try:
            est.train(endless, steps=1)
        except RuntimeError as error:
            told.append(str(error).split(".")[0])
            told.append("not me" in str(error))
    return told


def steps_seen(model_dir: str, record: Any, side: Any) -> Any:
    """What waits for nothing reads variables as they are before the step; once, whoever asks."""

    class Fetches(tf.train.SessionRunHook):
        def __init__(self, **names: str):
            self.names = names

        def before_run(self, run_context: Any) -> Any:
            return tf.train.SessionRunArgs(self.names)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            if not side.for_tpu:  # there, a hook has control after each loop
                record("hook", run_values.results)

    def host_call(step: Any, weight: Any, rate: Any, counted: Any) -> Any:
        def note(*values: Any) -> Any:
            record(*(v[0] for v in values))
            return np.int64(0)

        return [tf.py_func(note, [step, weight, rate, counted], tf.int64)]

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        weight = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
        count = tf.get_variable(
            "c", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False
        )
        step = tf.train.get_global_step()
        rate = tf.train.exponential_decay(0.1, step, 1, 0.5)
        rate = tf.identity(rate, "rate")
        seen = [tf.reshape(tensor, [1]) for tensor in (step, weight, rate)]
        tf.identity(tf.cast(step, tf.float32) + 0.5, "step_and_a_half")
        late = 0.0 if side.runtime == "jax" else late_zero()  # Python cannot wait within a step
        loss = tf.reduce_mean(tf.matmul(features, weight)) * (1.0 + late)
        if mode == "train":
            optimizer = tf.train.GradientDescentOptimizer(rate)
            if params["use_tpu"]:
                optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            applied = optimizer.minimize(loss, step)
            with tf.control_dependencies([applied]):
                increment = tf.assign_add(count, 1)
            train_op = tf.group(applied, increment)
        else:
            with tf.control_dependencies([loss]):
                train_op = increment = tf.assign_add(count, 1)
        with tf.control_dependencies([increment]):
            counted = count.read_value()
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode,
            loss=loss,
            train_op=train_op,
            host_call=(host_call, [*seen, tf.reshape(counted, [1])]),
        )

    est = _estimator(side, model_dir, model_fn)
    hook = Fetches(rate="rate:0", half="step_and_a_half:0")
    est.train(endless, steps=5)
    est.train(endless, steps=3, hooks=[hook])
    est.evaluate(endless, steps=2)
    return est.get_variable_value("c"), est.get_variable_value("w")


def without_features(model_dir: str, record: Any, side: Any) -> Any:
    """What an input_fn may return where model_fn makes its own examples."""

    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        record(mode, repr(features), repr(labels))
        weight = tf.get_variable("w", [1, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.matmul(tf.ones([BATCH, 1]), weight))
        train_op = minimized(loss, params) if mode == "train" else None
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, predictions={"y": tf.tile(weight, [BATCH, 1])}
        )

    for name, nothing in (
        ("empty", {}),
        ("pair", ({}, None)),
        ("none", None),
        ("nones", (None, None)),
    ):
        est = _estimator(side, f"{model_dir}/{name}", model_fn)
        est.train(lambda params, nothing=nothing: nothing, steps=3)
        record(est.evaluate(lambda params, nothing=nothing: nothing, steps=2))
        if not side.for_tpu:  # which predicts from datasets
            predictions = est.predict(lambda params, nothing=nothing: nothing)
            record([next(predictions) for _ in range(2)])
            predictions.close()
