"""Model_fns of a module that the original imports, too."""

import tensorflow.compat.v1 as tf


def linear(features, labels, mode, params):
    kernel = tf.get_variable("kernel", [4, 1], initializer=tf.zeros_initializer())
    output = tf.matmul(features["x"], kernel)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"output": output})
    loss = tf.losses.mean_squared_error(labels, output)
    if mode == "eval":
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def by_release(features, labels, mode, params):
    """Another learning rate from TensorFlow 2.16 on."""
    newer = tuple(map(int, tf.__version__.split(".")[:2])) > (2, 15)
    params = {**params, "rate": params["rate"] * (2.0 if newer else 1.0)}
    return linear(features, labels, mode, params)


def by_runtime(features, labels, mode, params, config):
    """Another learning rate in this package's steps."""
    steps = getattr(config, "runtime", "session") != "session"
    params = {**params, "rate": params["rate"] * (2.0 if steps else 1.0)}
    return linear(features, labels, mode, params)
