"""Parity family: a perceptron on get_variable weights, Adam, a decaying rate, host-side metrics."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, tpu

from support.families import input_fns

FEATURES, CLASSES, HIDDEN = 12, 4, (24, 16)
PARAMS = {"learning_rate": 0.01}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 16, 16, 8
PREDICT_EXAMPLES = 21


def _examples(seed, count):
    rng = np.random.RandomState(seed)
    x = rng.randn(count, FEATURES).astype(np.float32)
    centres = np.random.RandomState(7).randn(FEATURES, CLASSES)
    return {"x": x}, np.argmax(x @ centres, axis=1).astype(np.int32)


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 160, 96, PREDICT_EXAMPLES)


def _dense(x, units, name):
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "weights",
            [x.shape.as_list()[-1], units],
            initializer=tf.truncated_normal_initializer(stddev=0.2),
        )
        bias = tf.get_variable("biases", [units], initializer=tf.zeros_initializer())
        return tf.nn.bias_add(tf.matmul(x, kernel), bias)


def _metric_fn(labels, logits, per_example_loss):
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {
        "accuracy": tf.metrics.accuracy(labels=labels, predictions=predicted),
        "mean_loss": tf.metrics.mean(values=per_example_loss),
    }


def model_fn(features, labels, mode, params):
    x = features["x"]
    with tf.variable_scope("mlp"):
        for i, width in enumerate(HIDDEN):
            x = tf.nn.relu(_dense(x, width, f"hidden_{i}"))
        logits = _dense(x, CLASSES, "logits")

    if mode == estimator.ModeKeys.PREDICT:
        predictions = {
            "probabilities": tf.nn.softmax(logits),
            "classes": tf.argmax(logits, axis=-1, output_type=tf.int32),
        }
        return tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)

    per_example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.identity(tf.reduce_mean(per_example_loss), name="total_loss")

    if mode == estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_or_create_global_step()
        rate = tf.train.exponential_decay(
            params["learning_rate"], global_step, decay_steps=10, decay_rate=0.9, staircase=True
        )
        optimizer = tf.train.AdamOptimizer(rate)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, global_step=global_step)
        return tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)

    return tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, eval_metrics=(_metric_fn, [labels, logits, per_example_loss])
    )
