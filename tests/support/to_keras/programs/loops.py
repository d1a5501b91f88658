"""Control flow that depends on data: a `tf.while_loop` and a `tf.cond`."""

import numpy as np
import tensorflow as tf

PARAMS = {"size": 8, "most": 6}


def settle(state, kernel, most):
    """Repeats a layer until it hardly changes the state."""

    def goes_on(i, old, change):
        return tf.logical_and(i < most, change > 0.05)

    def once_more(i, old, change):
        new = tf.tanh(tf.matmul(old, kernel) + 0.1 * old)
        return i + 1, new, tf.reduce_max(tf.abs(new - old))

    start = tf.constant(0), state, tf.constant(1.0)
    return tf.while_loop(goes_on, once_more, start)[:2]


def model_fn(features, labels, mode, params):
    x = tf.layers.dense(features["x"], params["size"], name="into")
    with tf.variable_scope("settle"):
        kernel = tf.get_variable("kernel", [params["size"], params["size"]])
        rounds, state = settle(x, kernel, params["most"])
    large = tf.reduce_mean(features["x"]) > 0
    state = tf.cond(large, lambda: state * 2.0, lambda: tf.nn.relu(state) + 1.0)
    value = tf.layers.dense(state, 1, name="value")
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"value": value, "rounds": tf.fill([tf.shape(x)[0]], rounds)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.mean_squared_error(labels, value)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    x = rng.normal(size=(64, 5)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)
