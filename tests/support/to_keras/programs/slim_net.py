"""A network of `tf.contrib.slim`: arg scopes, batch normalization, regularizers, repeat."""

import numpy as np
import tensorflow as tf

slim = tf.contrib.slim

PARAMS = {"classes": 6, "dropout": 0.5, "weight_decay": 1e-3}


def arg_scope(training, weight_decay):
    batch_norm = {"is_training": training, "decay": 0.9, "epsilon": 0.001, "scale": True}
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(weight_decay),
        weights_initializer=tf.truncated_normal_initializer(stddev=0.1),
        activation_fn=tf.nn.elu,
        normalizer_fn=slim.batch_norm,
        normalizer_params=batch_norm,
    ) as scope:
        return scope


def network(images, classes, keep_prob, training, weight_decay):
    with slim.arg_scope(arg_scope(training, weight_decay)):
        with tf.variable_scope("net"):
            net = slim.repeat(images, 2, slim.conv2d, 8, [3, 3], scope="conv1")
            net = slim.max_pool2d(net, [2, 2], scope="pool1")
            net = slim.conv2d(net, 16, [5, 5], stride=2, padding="VALID", scope="conv2")
            net = slim.flatten(net)
            net = slim.fully_connected(net, 32, scope="fc3")
            net = slim.dropout(net, keep_prob, is_training=training, scope="dropout3")
            return slim.fully_connected(
                net, classes, activation_fn=None, normalizer_fn=None, scope="logits"
            )


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    logits = network(
        features["image"],
        params["classes"],
        1 - params["dropout"],
        training,
        params["weight_decay"],
    )
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": classes, "logits": logits})
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss = tf.losses.get_total_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, classes)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.MomentumOptimizer(0.01, 0.9, use_nesterov=True)
    train_op = slim.learning.create_train_op(loss, optimizer, clip_gradient_norm=4.0)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    images = rng.rand(64, 16, 16, 3).astype(np.float32)
    labels = rng.randint(0, 6, 64).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"image": images}, labels)).repeat().batch(16)
