"""Scenarios: what a model_fn may hold."""

import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu.ops import tpu_ops

import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

from ..model import Run, adam, changed, moved_to_host, mse, network, scenario, train_input


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


@scenario
def permutations(run: Run) -> None:
    """Values sent to other replicas, whole and in pieces, and gradients back; four replicas."""

    def change(output, hidden):
        sent = tpu_ops.collective_permute(hidden, [[0, 1], [1, 2], [2, 3]])
        pieces = tpu_ops.all_to_all(sent, 1, 0, 2, [[0, 2], [1, 3]])
        return output + tf.reduce_mean(pieces)

    estimator = run.estimator(changed(change))
    estimator.train(train_input, max_steps=10)


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
@moved_to_host
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
