"""A classifier of rows: dense layers with dropout."""

import numpy as np
import tensorflow as tf

PARAMS = {"hidden": [32, 16], "classes": 5, "dropout": 0.3, "learning_rate": 0.01}


def model_fn(features, labels, mode, params):
    net = features["x"]
    for i, units in enumerate(params["hidden"]):
        net = tf.layers.dense(net, units, activation=tf.nn.relu, name="hidden_%d" % (i + 1))
        net = tf.layers.dropout(
            net, params["dropout"], training=mode == tf.estimator.ModeKeys.TRAIN
        )
    logits = tf.layers.dense(net, params["classes"], name="logits")
    predictions = {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["class"])}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    x = rng.normal(size=(256, 12)).astype(np.float32)
    y = np.argmax(x[:, :5], axis=1).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).repeat().batch(16)
