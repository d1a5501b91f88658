"""What is run on cores of a simulated TPU, on logical CPUs and on JAX's devices, and compared.

A scenario takes a `Run`, and notes what is to be the same. Names of functions are those of the
scenarios.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding, layers
from tpu_estimator_compat import estimator as estimator_lib
from tpu_sim.model import (
    BATCH,
    FEATURES,
    Run,
    X,
    Y,
    adam,
    dataset,
    eval_input,
    mse,
    network,
    predict_input,
    spec_of,
    train_input,
)

Modes = tpu.InputPipelineConfig
SCENARIOS: dict[str, Callable[[Run], None]] = {}
MOVES_TO_HOST: set[str] = set()
"""Scenarios with ops that TensorFlow moves off the cores by itself."""


def scenario(function: Callable[[Run], None]) -> Callable[[Run], None]:
    SCENARIOS[function.__name__] = function
    return function


def changed(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A model_fn whose output is changed by `change(output, hidden)`."""

    def model(features, labels, mode, params):
        return spec_of(features, labels, mode, change)

    return model


def minimized(minimize: Callable[[Any], Any]) -> Callable[..., Any]:
    """A model_fn whose train_op is `minimize(loss)`."""

    def model(features, labels, mode, params):
        return spec_of(features, labels, mode, minimize=minimize)

    return model


# The way of a training.


@scenario
def plain(run: Run) -> None:
    run.train_evaluate_predict(run.estimator())


@scenario
def resume(run: Run) -> None:
    run.estimator().train(train_input, max_steps=10)
    estimator = run.estimator()
    estimator.train(train_input, steps=7)
    run.train_evaluate_predict(estimator, steps=20)


@scenario
def embedding_tables(run: Run) -> None:
    """Ids, of any number, stay on the host; cores take activations and give gradients."""

    def with_ids(input_fn):
        def add(features, labels=None):
            ids = features["id"]
            tags = tf.stack([ids % 3, ids % 5], axis=1)  # 0 is none
            features = {**features, "item": ids % 7, "tags": tf2.sparse.from_dense(tags)}
            return features if labels is None else (features, labels)

        return lambda params: input_fn(params).map(add)

    def model(features, labels, mode, params):
        x = tf.concat([features["x"], features["item"], features["tags"]], axis=1)
        return spec_of({**features, "x": x}, labels, mode)

    def table(rows: int) -> embedding.TableConfig:
        initializer = tf.random_normal_initializer(seed=rows)
        return embedding.TableConfig(rows, 3, initializer, combiner="mean")

    estimator = run.estimator(
        model,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            table_to_config_dict={"items": table(7), "tags": table(5)},
            feature_to_config_dict={
                "item": embedding.FeatureConfig("items"),
                "tags": embedding.FeatureConfig("tags"),
            },
            optimization_parameters=embedding.AdagradParameters(0.1),
        ),
    )
    estimator.train(with_ids(train_input), max_steps=10)
    run.see("evaluation", estimator.evaluate(with_ids(eval_input), steps=4))
    found = list(estimator.predict(with_ids(predict_input)))
    run.see("predictions", [float(p["y"][0]) for p in found])
    run.see_variables(estimator)


@scenario
def single_steps(run: Run) -> None:
    estimator = run.estimator(tpu_config={"iterations_per_loop": 1})
    run.train_evaluate_predict(estimator, steps=25)


@scenario
def long_loops(run: Run) -> None:
    estimator = run.estimator(
        tpu_config={"iterations_per_loop": 30}, run_config={"save_checkpoints_steps": 60}
    )
    run.train_evaluate_predict(estimator, steps=100)


@scenario
def end_of_data(run: Run) -> None:
    def input_fn(params):
        return dataset(96).batch(params["batch_size"], drop_remainder=True)

    estimator = run.estimator()
    estimator.train(input_fn, max_steps=100)
    run.see("step", estimator.get_variable_value("global_step"))
    run.see("evaluation", estimator.evaluate(eval_input, steps=100))
    run.see_variables(estimator)


@scenario
def loss_is_nan(run: Run) -> None:
    def change(output, hidden):
        bad = tf.equal(tf.train.get_global_step(), 7)
        return output * tf.where(bad, np.nan, 1.0)

    estimator = run.estimator(changed(change))
    try:
        estimator.train(train_input, max_steps=20)
    except tf.train.NanLossDuringTrainingError as error:
        run.see("error", str(error))
    run.see("saved", estimator.latest_checkpoint().partition("model/")[2])


@scenario
def train_and_evaluate(run: Run) -> None:
    def receiver():
        x = tf.placeholder(tf.float32, [None, FEATURES], name="x")
        ids = tf.placeholder(tf.int64, [None], name="id")
        return estimator_lib.export.ServingInputReceiver({"x": x, "id": ids}, {"x": x, "id": ids})

    estimator = run.estimator()
    exporter = estimator_lib.LatestExporter("latest", receiver)
    results, exports = estimator_lib.train_and_evaluate(
        estimator,
        estimator_lib.TrainSpec(train_input, max_steps=20),
        estimator_lib.EvalSpec(eval_input, steps=4, exporters=exporter, throttle_secs=0),
    )
    run.see("evaluation", results)
    run.see_variables(estimator)
    loaded = tf2.saved_model.load(exports[0].decode(), tags=["serve"])
    served = loaded.signatures["serving_default"](
        x=tf2.constant(X[:4]), id=tf2.range(4, dtype=tf2.int64)
    )
    run.see("served", {name: value.numpy() for name, value in served.items()})


@scenario
def input_state(run: Run) -> None:
    for steps in (10, 20):
        estimator = run.estimator(run_config={"save_input_state": True})
        estimator.train(train_input, max_steps=steps)
    run.see_variables(estimator)


# Input.


@scenario
def per_host_v1(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    )


@scenario
def per_host_v2(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V2})
    )


@scenario
def per_shard(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_SHARD_V1})
    )


@scenario
def training_per_host_v1(run: Run) -> None:
    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    estimator.train(train_input, max_steps=10)
    run.see_variables(estimator)


@scenario
def only_training(run: Run) -> None:
    hosts = []

    def input_fn(params):
        hosts.append(params["context"].current_host)
        return train_input(params)

    estimator = run.estimator()
    estimator.train(input_fn, max_steps=10)
    run.see_variables(estimator)
    if run.cores_per_replica:
        assert hosts == [0, 2]  # those of the replicas' first cores
        broadcast = {"per_host_input_for_training": Modes.BROADCAST}
        with pytest.raises(ValueError, match="Except the PER_HOST_V2 mode, the num of cores"):
            run.estimator(tpu_config=broadcast).train(input_fn, max_steps=20)


@scenario
def training_per_shard(run: Run) -> None:
    def input_fn(params):  # every core reads all
        return dataset().repeat().batch(params["batch_size"], drop_remainder=True)

    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_SHARD_V1})
    estimator.train(input_fn, max_steps=10)
    run.see_variables(estimator)


@scenario
def broadcast(run: Run) -> None:
    run.train_evaluate_predict(
        run.estimator(tpu_config={"per_host_input_for_training": Modes.BROADCAST})
    )


@scenario
def sliced_evaluation(run: Run) -> None:
    estimator = run.estimator(
        tpu_config={
            "per_host_input_for_training": Modes.PER_HOST_V2,
            "eval_training_input_configuration": Modes.SLICED,
        }
    )
    estimator.train(train_input, max_steps=10)
    run.see("evaluation", estimator.evaluate(eval_input, steps=4))


@scenario
def tensors_from_input_fn(run: Run) -> None:
    def input_fn(params):
        (features, labels) = tf.data.make_one_shot_iterator(train_input(params)).get_next()
        return features, labels

    estimator = run.estimator(tpu_config={"per_host_input_for_training": Modes.PER_HOST_V1})
    estimator.train(input_fn, max_steps=10)
    run.see_variables(estimator)


@scenario
def several_predictions(run: Run) -> None:
    estimator = run.estimator()
    estimator.train(train_input, max_steps=5)
    whole = list(estimator.predict(predict_input, yield_single_examples=False))
    run.see("predictions", np.concatenate([p["y"] for p in whole]))
    first = next(estimator.predict(predict_input))
    run.see("first", first)


@scenario
def refused_on_a_pod(run: Run) -> None:
    """What would be wrong without a word on several hosts."""
    if run.hosts == 1:
        return

    def generated(params):
        signature = (
            {"x": tf2.TensorSpec([FEATURES]), "id": tf2.TensorSpec([], tf.int64)},
            tf2.TensorSpec([1]),
        )
        examples = tf2.data.Dataset.from_generator(
            lambda: iter(dataset().as_numpy_iterator()), output_signature=signature
        )
        return examples.repeat().batch(params["batch_size"], drop_remainder=True)

    with pytest.raises(ValueError, match="input_fn's dataset runs Python"):
        run.estimator().train(generated, max_steps=5)
    with pytest.raises(NotImplementedError, match=r"save_input_state=True.*2 hosts"):
        run.estimator(run_config={"save_input_state": True}).train(train_input, max_steps=5)


@scenario
def strings_are_refused(run: Run) -> None:
    """Cores have none, nor have JAX's devices; logical CPUs take them."""

    def input_fn(params):
        named = dataset().map(lambda features, y: ({**features, "name": tf.as_string(y[0])}, y))
        return named.repeat().batch(params["batch_size"], drop_remainder=True)

    if run.on_tpu or run.on_jax:
        with pytest.raises(ValueError, match=r"gives strings.*: features\['name'\]"):
            run.estimator().train(input_fn, max_steps=5)
    else:
        run.estimator().train(input_fn, max_steps=5)


@scenario
def split_input(run: Run) -> None:
    """A replica's cores split its input; the simulation computes whole tensors."""
    dims = {"input_partition_dims": [{"x": [2, 1], "id": None}, None]}
    run.train_evaluate_predict(run.estimator(tpu_config=dims if run.cores_per_replica else None))


# Hooks and host calls.


@scenario
def host_call(run: Run) -> None:
    def model(features, labels, mode, params):
        def on_host(step, losses, hidden):
            with tf2.summary.create_file_writer(run.model_dir).as_default():
                with tf2.summary.record_if(True):
                    tf2.summary.scalar("mean_loss", tf.reduce_mean(losses), step=step[0])
                    tf2.summary.scalar("mean_hidden", tf.reduce_mean(hidden), step=step[0])
            return tf.summary.all_v2_summary_ops()

        spec = spec_of(features, labels, mode)
        if mode != tpu.ModeKeys.TRAIN:
            return spec
        hidden = tf.get_default_graph().get_tensor_by_name("dense/Relu:0")
        step = tf.reshape(tf.train.get_global_step(), [1])
        return spec._replace(host_call=(on_host, [step, tf.reshape(spec.loss, [1]), hidden]))

    run.train_evaluate_predict(run.estimator(model))


@scenario
def host_call_now_and_then(run: Run) -> None:
    written = run.directory / "calls.txt"

    def model(features, labels, mode, params):
        def on_host(step, ids):
            line = tf.strings.format("{} {}\n", [step[0], tf.size(ids)])
            return tf.print(line, output_stream=f"file://{written}")

        spec = spec_of(features, labels, mode)
        if mode != tpu.ModeKeys.TRAIN:
            return spec
        step = tf.reshape(tf.train.get_global_step(), [1])
        return spec._replace(host_call=(on_host, [step, features["id"]]))

    estimator = run.estimator(model, tpu_config={"experimental_host_call_every_n_steps": 2})
    estimator.train(train_input, max_steps=10)
    run.see("calls", written.read_text().split("\n"))


@scenario
def hook_that_fetches(run: Run) -> None:
    class Fetch(tf.train.SessionRunHook):
        def begin(self):
            self.tensor = tf.get_default_graph().get_tensor_by_name("dense/Relu:0")
            self.seen = []

        def before_run(self, run_context):
            return tf.train.SessionRunArgs([self.tensor, tf.train.get_global_step()])

        def after_run(self, run_context, run_values):
            hidden, step = run_values.results
            self.seen.append([hidden.sum(), step])

    hook = Fetch()
    run.train_evaluate_predict(run.estimator(), hooks=[hook])
    run.see("fetched", hook.seen)


@scenario
def hook_on_a_variable_of_its_own(run: Run) -> None:
    """It fetches what only it needs, of a variable that no step uses."""

    def change(output, hidden):
        weights = tf.get_variable(
            "unused", [8, 1], initializer=tf.ones_initializer(), trainable=False
        )
        tf.add_to_collection("mine", tf.reduce_sum(tf.matmul(hidden, weights)))
        return output

    class Ask(tf.train.SessionRunHook):
        def begin(self):
            [self.tensor] = tf.get_collection("mine")
            self.seen = []

        def after_run(self, run_context, run_values):
            self.seen.append(run_context.session.run(self.tensor))

    hook = Ask()
    run.train_evaluate_predict(run.estimator(changed(change)), hooks=[hook])
    run.see("asked", hook.seen)


@scenario
def hooks_of_tensorflow(run: Run) -> None:
    class Listener(tf.train.CheckpointSaverListener):
        def __init__(self):
            self.seen = []

        def after_save(self, session, global_step_value):
            self.seen.append(global_step_value)

    listener = Listener()
    estimator = run.estimator()
    hooks = [
        tf.train.StopAtStepHook(last_step=18),
        tf.train.StepCounterHook(every_n_steps=10, output_dir=run.model_dir),
        tf.train.LoggingTensorHook(["dense/Relu:0"], every_n_iter=5),
        tf.train.NanTensorHook("mean_squared_error/value:0"),
    ]
    estimator.train(train_input, max_steps=100, hooks=hooks, saving_listeners=[listener])
    run.see("saved", listener.seen)
    run.see_variables(estimator)
    run.see_files()


@scenario
def summaries_of_the_model(run: Run) -> None:
    """Strings, which cores do not have: the host makes them of the first replica's tensors."""

    def change(output, hidden):
        tf.summary.scalar("mean_hidden", tf.reduce_mean(hidden))
        tf.summary.histogram("hidden", hidden)
        return output

    estimator = run.estimator(changed(change), run_config={"save_summary_steps": 5})
    run.train_evaluate_predict(estimator)


@scenario
def in_memory_evaluation(run: Run) -> None:
    estimator = run.estimator()
    hook = estimator_lib.experimental.InMemoryEvaluatorHook(
        estimator, eval_input, steps=4, every_n_iter=10
    )
    estimator.train(train_input, max_steps=20, hooks=[hook])
    run.see_variables(estimator)
    run.see_files()


# First values.


@scenario
def warm_start(run: Run) -> None:
    first = run.estimator()
    first.train(train_input, max_steps=5)
    saved = first.latest_checkpoint()
    again = run.estimator(run_config={"model_dir": f"{run.model_dir}2"}, warm_start_from=saved)
    again.train(train_input, max_steps=5)
    run.see_variables(again)


@scenario
def init_from_checkpoint(run: Run) -> None:
    first = run.estimator()
    first.train(train_input, max_steps=5)
    saved = first.latest_checkpoint()

    def model(features, labels, mode, params):
        def scaffold_fn():
            tf.train.init_from_checkpoint(saved, {"dense/": "dense/"})
            return tf.train.Scaffold()

        spec = spec_of(features, labels, mode)
        return spec._replace(scaffold_fn=scaffold_fn) if mode == tpu.ModeKeys.TRAIN else spec

    again = run.estimator(model, run_config={"model_dir": f"{run.model_dir}2"})
    again.train(train_input, max_steps=5)
    run.see_variables(again)


@scenario
def scaffold(run: Run) -> None:
    def model(features, labels, mode, params):
        def scaffold_fn():
            return tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=2))

        return spec_of(features, labels, mode)._replace(scaffold_fn=scaffold_fn)

    run.train_evaluate_predict(run.estimator(model), steps=50)


@scenario
def moving_averages(run: Run) -> None:
    def minimize(loss):
        train_op = adam(loss)
        averages = tf.train.ExponentialMovingAverage(0.9, tf.train.get_global_step())
        with tf.control_dependencies([train_op]):
            return averages.apply(tf.trainable_variables())

    run.train_evaluate_predict(run.estimator(minimized(minimize)))


# What a model_fn may hold.


@scenario
def branches_and_loops(run: Run) -> None:
    def change(output, hidden):
        output = tf.cond(tf.train.get_global_step() > 3, lambda: output * 1.5, lambda: output)
        _, output = tf.while_loop(
            lambda i, _: i < 3, lambda i, o: (i + 1, o * 0.9), (0, output), maximum_iterations=3
        )
        return output

    run.train_evaluate_predict(run.estimator(changed(change)))


@scenario
def sparse_gradients(run: Run) -> None:
    def change(output, hidden):
        table = tf.get_variable("table", [10, 8], initializer=tf.constant_initializer(0.1))
        rows = tf.nn.embedding_lookup(table, tf.argmax(hidden, -1))
        return output + tf.reduce_sum(rows * hidden, 1, keepdims=True)

    run.train_evaluate_predict(run.estimator(changed(change)))


@scenario
def batch_normalization(run: Run) -> None:
    def model(features, labels, mode, params):
        training = mode == tpu.ModeKeys.TRAIN
        output, _ = network({"x": layers.batch_normalization(features["x"], training=training)})
        if mode == tpu.ModeKeys.PREDICT:
            predictions = {"y": output, "id": tf.identity(features["id"])}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        loss = tf.losses.mean_squared_error(labels, output)
        if not training:
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(mse, [labels, output]))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=adam(loss))

    run.train_evaluate_predict(run.estimator(model))


@scenario
def bfloat16(run: Run) -> None:
    def model(features, labels, mode, params):
        with tf.tpu.bfloat16_scope():
            x = tf.cast(features["x"], tf.bfloat16)
            output = tf.cast(
                layers.dense(x, 1, kernel_initializer=tf.ones_initializer()), tf.float32
            )
        if mode == tpu.ModeKeys.PREDICT:
            predictions = {"y": output, "id": tf.identity(features["id"])}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        loss = tf.losses.mean_squared_error(labels, output)
        if mode == tpu.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(mse, [labels, output]))
        optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    run.train_evaluate_predict(run.estimator(model))


@scenario
def dropout(run: Run) -> None:
    """Streams of random numbers differ, so only their effect on nothing is compared."""

    def change(output, hidden):
        return output + 0 * tf.reduce_mean(tf.nn.dropout(hidden, rate=0.5, seed=4))

    run.train_evaluate_predict(run.estimator(changed(change)))


@scenario
def subgroups(run: Run) -> None:
    """Sums over pairs of replicas; four replicas."""

    def change(output, hidden):
        mean = tf.reduce_mean(output)
        sums = tf.tpu.cross_replica_sum(mean, group_assignment=[[0, 2], [1, 3]])
        return output + tf.stop_gradient(sums)

    estimator = run.estimator(changed(change))
    estimator.train(train_input, max_steps=10)
    run.see_variables(estimator)


@scenario
def permutations(run: Run) -> None:
    """Values sent to other replicas, whole and in pieces, and gradients back; four replicas."""

    def change(output, hidden):
        sent = tpu_ops.collective_permute(hidden, [[0, 1], [1, 2], [2, 3]])
        pieces = tpu_ops.all_to_all(sent, 1, 0, 2, [[0, 2], [1, 3]])
        return output + tf.reduce_mean(pieces)

    estimator = run.estimator(changed(change))
    estimator.train(train_input, max_steps=10)
    run.see_variables(estimator)


@scenario
def asserts(run: Run) -> None:
    def change(output, hidden):
        check = tf.assert_greater(tf.constant(1e9), tf.reduce_max(hidden), message="large")
        with tf.control_dependencies([check]):
            return tf.identity(output)

    run.train_evaluate_predict(run.estimator(changed(change)))


@scenario
def outside_compilation(run: Run) -> None:
    """The host computes for a step in its middle, which JAX's runtime refuses."""

    def change(output, hidden):
        def on_host(value):
            return tf.ensure_shape(tf.py_func(lambda a: a * 2, [value], tf.float32), value.shape)

        doubled = tf.tpu.outside_compilation(on_host, output)
        return output + tf.stop_gradient(doubled) * 0.1

    if run.on_jax:
        with pytest.raises(NotImplementedError, match=r"PyFunc 'PyFunc' \(.*do it in input_fn"):
            run.estimator(changed(change)).train(train_input, max_steps=10)
        return
    run.train_evaluate_predict(run.estimator(changed(change)))


@scenario
def prints(run: Run) -> None:
    """TensorFlow moves it off a TPU's cores; JAX's runtime refuses it, and does not drop it."""

    def change(output, hidden):
        with tf.control_dependencies([tf.print("hidden", tf.shape(hidden))]):
            return tf.identity(output)

    if run.on_jax:
        with pytest.raises(NotImplementedError, match=r"PrintV2 'PrintV2' \(.*host_call"):
            run.estimator(changed(change)).train(train_input, max_steps=10)
        return
    run.train_evaluate_predict(run.estimator(changed(change)))


MOVES_TO_HOST.add("prints")


# Other ways in.


@scenario
def keras_model(run: Run) -> None:
    estimator = run.estimator()
    model = estimator.keras_model(train_input)
    history = model.fit(train_input({"batch_size": BATCH}), steps_per_epoch=10, epochs=2, verbose=0)
    run.see("history", history.history)
    batches = eval_input({"batch_size": BATCH})
    run.see("evaluation", model.evaluate(batches, verbose=0, return_dict=True))
    run.see_variables(estimator)
    if run.hosts > 1:
        with pytest.raises(NotImplementedError, match="2 hosts"):
            model.predict(batches)
        return
    features = batches.map(lambda features, _: features)
    run.see("predictions", model.predict(features, verbose=0)["y"])
    # 50 examples in batches of 32: the second is dealt unevenly.
    partial = dataset(50).batch(BATCH).map(lambda features, _: features)
    run.see("of a partial batch", model.predict(partial, verbose=0)["y"])


@scenario
def train_distribute(run: Run) -> None:
    """A plain Estimator over the strategy of a TPU, as TensorFlow 1 had it; not for JAX."""
    if run.on_jax:
        estimator = run.estimator(run_config={"train_distribute": tpu.TPUStrategy()})
        with pytest.raises(ValueError, match=r"train_distribute=\.\.\.\) is a strategy of TensorF"):
            estimator.train(train_input, max_steps=5)
        return

    def model(features, labels, mode):
        output = layers.dense(
            features["x"], 1, kernel_initializer=tf.glorot_uniform_initializer(seed=2)
        )
        if mode == tpu.ModeKeys.PREDICT:
            return estimator_lib.EstimatorSpec(mode, predictions={"y": output})
        loss = tf.losses.mean_squared_error(labels, output)
        if mode == tpu.ModeKeys.EVAL:
            return estimator_lib.EstimatorSpec(mode, loss=loss, eval_metric_ops=mse(labels, output))
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return estimator_lib.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return (
            tf2.data.Dataset.from_tensor_slices(({"x": X}, Y))
            .repeat()
            .batch(8, drop_remainder=True)
        )

    strategy = tpu.TPUStrategy(run.cluster, steps_per_run=2)
    config = estimator_lib.RunConfig(
        model_dir=run.model_dir,
        tf_random_seed=1,
        train_distribute=strategy,
        eval_distribute=strategy,
    )
    estimator = estimator_lib.Estimator(model, config=config)
    estimator.train(input_fn, max_steps=20)
    run.see("evaluation", estimator.evaluate(input_fn, steps=4))
    predictions = itertools.islice(estimator.predict(input_fn), 16)
    run.see("predictions", [p["y"] for p in predictions])
    run.see_variables(estimator)


@scenario
def without_v2_behavior(run: Run) -> None:
    """The last of a process: what it switches off stays off."""
    tf.disable_v2_behavior()
    run.train_evaluate_predict(run.estimator())
