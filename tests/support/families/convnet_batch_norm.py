"""Parity family: convolutions and batch norm of tf.layers, update ops under the momentum step."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, layers, tpu

from support.families import input_fns

SIDE, CLASSES = 8, 3
PARAMS = {"learning_rate": 0.02}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 16, 16, 8
PREDICT_EXAMPLES = 19


def _examples(seed, count):
    rng = np.random.RandomState(seed)
    labels = rng.randint(CLASSES, size=count).astype(np.int32)
    patterns = np.random.RandomState(11).randn(CLASSES, SIDE, SIDE, 1)
    images = patterns[labels] + 4.0 * rng.randn(count, SIDE, SIDE, 1)
    return images.astype(np.float32), labels


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 128, 96, PREDICT_EXAMPLES)


def _block(images, filters, stride, training, name):
    with tf.variable_scope(name):
        images = layers.conv2d(
            images, filters, kernel_size=3, strides=stride, padding="same", use_bias=False
        )
        images = layers.batch_normalization(images, momentum=0.9, training=training)
        return tf.nn.relu(images)


def _metric_fn(labels, logits):
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
    return {
        "accuracy": tf.metrics.accuracy(labels, predicted),
        "top_2": tf.metrics.mean(tf.nn.in_top_k(logits, labels, k=2)),
    }


def model_fn(features, labels, mode, params):
    training = mode == estimator.ModeKeys.TRAIN
    images = _block(features, 8, 1, training, "block_1")
    images = _block(images, 12, 2, training, "block_2")
    logits = layers.dense(layers.flatten(images), CLASSES, name="logits")

    if mode == estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"probabilities": tf.nn.softmax(logits)})

    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    decay = [tf.nn.l2_loss(v) for v in tf.trainable_variables() if "batch_norm" not in v.name]
    loss = tf.add(loss, 1e-4 * tf.add_n(decay), name="total_loss")

    if training:
        optimizer = tf.train.MomentumOptimizer(params["learning_rate"], momentum=0.9)
        if params["use_tpu"]:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    metrics = (_metric_fn, {"labels": labels, "logits": logits})
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
