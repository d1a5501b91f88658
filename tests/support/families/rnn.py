"""Parity family: a GRU unrolled by dynamic_rnn's while loop over sequences of unequal length."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, rnn_cell, tpu

from support.families import input_fns

LENGTH, WIDTH, UNITS = 10, 5, 14
PARAMS = {"learning_rate": 0.005}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 16, 16, 8
PREDICT_EXAMPLES = 18


def _examples(seed, count):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1.0, 1.0, size=(count, LENGTH, WIDTH)).astype(np.float32)
    lengths = rng.randint(2, LENGTH + 1, size=count).astype(np.int32)
    mask = np.arange(LENGTH)[None, :] < lengths[:, None]
    target = np.sum(x[:, :, 0] * mask, axis=1, keepdims=True).astype(np.float32)
    return {"sequence": x, "length": lengths}, target


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 128, 96, PREDICT_EXAMPLES)


def _power(x, exponent, for_tpu):
    """x ** exponent by a loop of its own, so that one loop does not come from the library.

    A TPU's gradients of loops need their longest length in advance.
    """
    _, result = tf.while_loop(
        lambda i, _: i < exponent,
        lambda i, r: (i + 1, r * x),
        [0, tf.ones_like(x)],
        maximum_iterations=exponent if for_tpu else None,
    )
    return result


def _metric_fn(labels, outputs):
    return {
        "mean_absolute_error": tf.metrics.mean_absolute_error(labels, outputs),
        "root_mean_squared_error": tf.metrics.root_mean_squared_error(labels, outputs),
    }


def model_fn(features, labels, mode, params):
    cell = rnn_cell.GRUCell(UNITS)
    states, last = tf.nn.dynamic_rnn(
        cell, features["sequence"], sequence_length=features["length"], dtype=tf.float32
    )
    kernel = tf.get_variable("head/kernel", [UNITS, 1], initializer=tf.glorot_uniform_initializer())
    bias = tf.get_variable("head/bias", [1], initializer=tf.zeros_initializer())
    outputs = tf.matmul(last, kernel) + bias

    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"outputs": outputs, "states": states})

    error = _power(outputs - labels, 2, params["use_tpu"])
    loss = tf.identity(tf.reduce_mean(error), name="total_loss")
    if mode == estimator.ModeKeys.TRAIN:
        optimizer = tf.train.AdamOptimizer(params["learning_rate"])
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(_metric_fn, [labels, outputs]))
