"""Threads that train and predict beside each other get the numbers that each gets alone."""

import random
import threading

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from keras.src.backend.tensorflow import core

from tpu_estimator_compat.tf_internals import (
    FuncGraph,
    cond_v2,
    context,
    control_flow_util,
    ops,
    while_v2,
)
from tpu_estimator_compat.v1 import estimator

FEATURES = np.arange(32, dtype="f4").reshape(8, 4) / 32
LABELS = np.ones([8, 1], "f4")


def input_fn():
    return tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat().batch(4)


def served_input_fn():
    return tf.data.Dataset.from_tensor_slices(FEATURES).batch(8)


def by_variables(features):
    weight = tf.get_variable("w", [4, 1])
    product = tf.matmul(features, weight)
    return tf.cond(tf.reduce_sum(product) > 0, lambda: product * 2.0, lambda: product - 1.0)


def by_layers(features):
    hidden = keras.layers.Dense(3)(features)
    return keras.layers.Dense(1)(hidden)


def by_a_loop(features):
    weight = tf.get_variable("w", [4, 4])
    hidden = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ weight), [0, features])[1]
    return tf.reduce_sum(hidden, 1, keepdims=True)


def made(folder, outputs, strategy=None):
    def model_fn(features, labels, mode):
        predicted = outputs(features)
        if labels is None:
            return estimator.EstimatorSpec(mode, predictions={"value": predicted})
        loss = tf.reduce_mean(tf.square(predicted - labels))
        optimizer = tf.train.AdamOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    distribute = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]) if strategy else None
    config = estimator.RunConfig(str(folder), tf_random_seed=7, train_distribute=distribute)
    return estimator.Estimator(model_fn, config=config)


KINDS = {
    "variables": (by_variables, None),
    "layers": (by_layers, None),
    "loop": (by_a_loop, None),
    "replicas": (by_variables, "mirrored"),
}


def trained(folder, kind):
    model = made(folder, *KINDS[kind])
    model.train(input_fn, steps=5)
    return {name: model.get_variable_value(name).tolist() for name in model.get_variable_names()}


def predicted(model):
    return [each["value"].tolist() for each in model.predict(served_input_fn)]


def shared():
    """What captures replace, and the states that all threads share."""
    return [
        *(cond_v2.cond_v2, cond_v2.indexed_case, while_v2.while_loop, ops._get_graph_from_inputs),
        *(FuncGraph._create_op_internal, tf.TensorShape.__getitem__, tf.TensorShape.__iter__),
        *(core.name_scope.__init__, core.Variable._deferred_initialize, random.randint),
        *(tf.train.Optimizer.compute_gradients, tf.train.Optimizer.apply_gradients),
        *(tf.distribute.get_strategy, control_flow_util.EnableControlFlowV2),
        *(control_flow_util.ENABLE_CONTROL_FLOW_V2, context.optionals_in_gradients_enabled),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [5, pytest.param(250, marks=pytest.mark.full)])
def test_threads_train_and_predict_as_each_does_alone(tmp_path, rounds):
    """Four threads train each kind in turn, four others have one estimator predict."""
    alone = {kind: trained(tmp_path / kind, kind) for kind in KINDS}
    served = made(tmp_path / "served", by_layers)
    served.train(input_fn, steps=2)
    expected = predicted(served)
    before, state = shared(), random.getstate()
    wrong = []

    def train(number):
        kinds = list(KINDS)[number:] + list(KINDS)[:number]
        for kind in kinds:
            if trained(tmp_path / f"{number}_{kind}", kind) != alone[kind]:
                wrong.append(kind)

    def serve():
        for _ in range(rounds):
            if predicted(served) != expected:
                wrong.append("predictions")

    def noted(function, *args):
        try:
            function(*args)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=noted, args=(train, i)) for i in range(4)]
    threads += [threading.Thread(target=noted, args=(serve,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert shared() == before
    assert random.getstate() == state


class Fails(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        raise RuntimeError("of the hook")


@pytest.mark.parametrize("call", ["train", "evaluate", "predict"])
def test_an_error_as_a_session_starts_leaves_no_threads_of_queues(tmp_path, caplog, call):
    """As in the original, none goes on with a session that is gone, and reports its error."""

    def queue_fn():
        names = tf.train.string_input_producer(["a", "b"], shuffle=False)
        lengths = tf.strings.length(tf.train.batch([names.dequeue()], 4, capacity=100_000))
        return {"x": tf.cast(lengths, tf.float32)}, None

    def model_fn(features, labels, mode):
        loss = tf.reduce_mean(features["x"] * tf.get_variable("w", []))
        train_op = tf.assign_add(tf.train.get_global_step(), 1)
        predictions = {"x": features["x"]}
        return estimator.EstimatorSpec(mode, predictions, loss=loss, train_op=train_op)

    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(queue_fn, steps=1)
    before = set(threading.enumerate())
    with caplog.at_level("INFO", "tensorflow"), pytest.raises(RuntimeError, match="of the hook"):
        list(getattr(model, call)(queue_fn, hooks=[Fails()]))
    others = [each for each in threading.enumerate() if "QueueRunner" in each.name]
    for thread in others:
        thread.join(5)
    assert set(others) <= before
    assert "Error reported to Coordinator" not in caplog.text
