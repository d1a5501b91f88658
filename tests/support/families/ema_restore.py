"""Parity family: trains with moving averages; evaluates and predicts with the averages restored."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, tpu

from support.families import input_fns

FEATURES, UNITS = 6, 20
PARAMS = {"learning_rate": 5e-3, "decay": 0.9}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 16, 16, 8
PREDICT_EXAMPLES = 20


def _examples(seed, count):
    x = np.random.RandomState(seed).uniform(-1.0, 1.0, size=(count, FEATURES))
    y = np.sin(2.0 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]
    return {"x": x.astype(np.float32)}, y.astype(np.float32)


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 128, 96, PREDICT_EXAMPLES)


def _network(x):
    with tf.variable_scope("network"):
        w1 = tf.get_variable("w1", [FEATURES, UNITS], initializer=tf.glorot_normal_initializer())
        b1 = tf.get_variable("b1", [UNITS], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [UNITS, 1], initializer=tf.glorot_normal_initializer())
        b2 = tf.get_variable("b2", [1], initializer=tf.zeros_initializer())
        return tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) + b2


def _metric_fn(labels, outputs):
    return {
        "mean_squared_error": tf.metrics.mean_squared_error(labels, outputs),
        "mean_output": tf.metrics.mean(outputs),
    }


def model_fn(features, labels, mode, params):
    global_step = tf.train.get_or_create_global_step()
    outputs = _network(features["x"])
    averages = tf.train.ExponentialMovingAverage(params["decay"], num_updates=global_step)

    def restore_averages():
        return tf.train.Scaffold(saver=tf.train.Saver(averages.variables_to_restore()))

    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(
            mode, predictions={"outputs": outputs}, scaffold_fn=restore_averages
        )

    loss = tf.reduce_mean(tf.squared_difference(outputs, labels), name="total_loss")
    if mode == estimator.ModeKeys.TRAIN:
        optimizer = tf.train.RMSPropOptimizer(params["learning_rate"], decay=0.9, momentum=0.5)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        step = optimizer.minimize(loss, global_step=global_step)
        with tf.control_dependencies([step]):
            train_op = averages.apply(tf.trainable_variables())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return tpu.TPUEstimatorSpec(
        mode, loss=loss, eval_metrics=(_metric_fn, [labels, outputs]), scaffold_fn=restore_averages
    )
