"""A DCGAN: predictions are the generator's images; both parts have an optimizer of their own."""

import numpy as np
import tensorflow as tf

PARAMS = {"depth": 8}


def generator(noise, depth, training):
    with tf.variable_scope("generator"):
        x = tf.layers.dense(noise, 4 * 4 * 4 * depth, use_bias=False, name="project")
        x = tf.layers.batch_normalization(x, training=training, name="project_bn")
        x = tf.reshape(tf.nn.relu(x), [-1, 4, 4, 4 * depth])
        for i, filters in enumerate([2 * depth, depth]):
            x = tf.layers.conv2d_transpose(
                x, filters, 5, strides=2, padding="same", use_bias=False, name="deconv%d" % i
            )
            x = tf.layers.batch_normalization(x, training=training, name="bn%d" % i)
            x = tf.nn.relu(x)
        return tf.layers.conv2d_transpose(
            x, 1, 5, strides=2, padding="same", activation=tf.tanh, name="image"
        )


def discriminator(images, depth, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        x = images
        for i, filters in enumerate([depth, 2 * depth]):
            x = tf.layers.conv2d(x, filters, 5, strides=2, padding="same", name="conv%d" % i)
            x = tf.nn.leaky_relu(x, alpha=0.2)
        return tf.layers.dense(tf.layers.flatten(x), 1, name="logit")


def model_fn(features, labels, mode, params):
    depth = params["depth"]
    images = generator(features["noise"], depth, mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"image": images})
    real, fake = discriminator(labels, depth), discriminator(images, depth, reuse=True)
    d_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(real), real, label_smoothing=0.2)
    d_loss += tf.losses.sigmoid_cross_entropy(tf.zeros_like(fake), fake)
    g_loss = tf.losses.sigmoid_cross_entropy(tf.ones_like(fake), fake)
    loss = d_loss + g_loss
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    d_step = tf.train.AdamOptimizer(1e-4, beta1=0.5).minimize(
        d_loss, var_list=tf.trainable_variables("discriminator")
    )
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        g_step = tf.train.AdamOptimizer(1e-3, beta1=0.5).minimize(
            g_loss,
            global_step=tf.train.get_global_step(),
            var_list=tf.trainable_variables("generator"),
        )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(d_step, g_step))


def input_fn():
    rng = np.random.RandomState(0)
    noise = rng.normal(size=(64, 20)).astype(np.float32)
    images = np.tanh(rng.normal(size=(64, 32, 32, 1))).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"noise": noise}, images)).repeat().batch(8)
