"""A convnet with batch normalization."""

import numpy as np
import tensorflow as tf

PARAMS = {"filters": [8, 16], "learning_rate": 1e-3}


def conv_block(inputs, filters, training, name):
    with tf.variable_scope(name):
        x = tf.layers.conv2d(inputs, filters, 3, padding="same", use_bias=False, name="conv")
        x = tf.layers.batch_normalization(x, momentum=0.9, training=training, name="bn")
        x = tf.nn.elu(x)
        return tf.layers.max_pooling2d(x, pool_size=2, strides=2)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    x = tf.reshape(features["image"], [-1, 28, 28, 1])
    for i, filters in enumerate(params["filters"]):
        x = conv_block(x, filters, training, "block%d" % i)
    x = tf.layers.flatten(x)
    x = tf.layers.dense(x, 32, activation=tf.nn.relu, name="fc")
    logits = tf.layers.dense(x, 10, name="logits")
    classes = tf.argmax(logits, axis=-1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"classes": classes, "probabilities": tf.nn.softmax(logits, name="softmax")}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    onehot_labels = tf.one_hot(labels, depth=10)
    loss = tf.losses.softmax_cross_entropy(onehot_labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, classes)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    images = rng.rand(128, 784).astype(np.float32)
    labels = rng.randint(0, 10, 128)
    return tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).repeat().batch(16)
