"""Separable, dilated and one-dimensional convolutions, two heads."""

import numpy as np
import tensorflow as tf

PARAMS = {"filters": [8, 8, 16]}


def image_tower(images, filters):
    with tf.variable_scope("images"):
        x = tf.layers.conv2d(images, 4, 3, strides=2, padding="same", name="stem")
        for i, size in enumerate(filters):
            x = tf.layers.separable_conv2d(
                x, size, 3, padding="same", activation=tf.nn.relu6, name="separable_%d" % i
            )
        x = tf.layers.conv2d(x, 8, 3, padding="same", dilation_rate=2, name="dilated")
        x = tf.layers.average_pooling2d(tf.nn.elu(x), 2, 2)
        return tf.reduce_mean(x, axis=[1, 2])


def sound_tower(sound):
    with tf.variable_scope("sound"):
        x = tf.layers.conv1d(sound, 8, 5, padding="same", activation=tf.nn.relu, name="conv")
        x = tf.layers.max_pooling1d(x, 2, 2)
        return tf.layers.flatten(x)


def model_fn(features, labels, mode, params):
    net = tf.concat(
        [image_tower(features["image"], params["filters"]), sound_tower(features["sound"])], -1
    )
    net = tf.layers.dense(net, 16, activation=tf.nn.softplus, name="joint")
    kind = tf.layers.dense(net, 4, name="kind")
    place = tf.layers.dense(net, 2, activation=tf.sigmoid, name="place")
    predictions = {"kind": tf.nn.softmax(kind), "place": place}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    kind_loss = tf.losses.sparse_softmax_cross_entropy(labels["kind"], kind)
    place_loss = tf.losses.absolute_difference(labels["place"], place)
    loss = kind_loss + 0.5 * place_loss
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "kind": tf.metrics.mean_per_class_accuracy(labels["kind"], tf.argmax(kind, 1), 4),
            "place": tf.metrics.mean_absolute_error(labels["place"], place),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.GradientDescentOptimizer(
        tf.train.exponential_decay(0.1, tf.train.get_global_step(), 20, 0.9, staircase=True)
    )
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "image": rng.rand(64, 16, 16, 3).astype(np.float32),
        "sound": rng.normal(size=(64, 12, 2)).astype(np.float32),
    }
    labels = {
        "kind": rng.randint(0, 4, 64).astype(np.int32),
        "place": rng.rand(64, 2).astype(np.float32),
    }
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)
