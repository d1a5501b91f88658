"""Attention by `tf.einsum`, with the tanh form of gelu and T5's norm."""

import numpy as np
import tensorflow as tf

PARAMS = {"width": 24, "heads": 3, "layers": 2}


def gelu(x):
    cdf = 0.5 * (1.0 + tf.tanh((np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3)))))
    return x * cdf


def rms_norm(x, name):
    with tf.variable_scope(name):
        scale = tf.get_variable("scale", [x.shape[-1].value], initializer=tf.ones_initializer())
        variance = tf.reduce_mean(tf.square(x), axis=-1, keepdims=True)
        return x * tf.rsqrt(variance + 1e-6) * scale


def attention(x, bias, heads):
    width = x.shape[-1].value
    size = width // heads

    def project(name):
        kernel = tf.get_variable(name, [width, heads, size])
        return tf.einsum("bld,dhk->blhk", x, kernel)

    q, k, v = project("q"), project("k"), project("v")
    scores = tf.einsum("bqhk,blhk->bhql", q, k) / np.sqrt(float(size)) + bias
    context = tf.einsum("bhql,blhk->bqhk", tf.nn.softmax(scores), v)
    kernel = tf.get_variable("o", [heads, size, width])
    return tf.einsum("bqhk,hkd->bqd", context, kernel)


def model_fn(features, labels, mode, params):
    x = tf.layers.dense(features["frames"], params["width"], name="embed")
    bias = (1.0 - features["mask"][:, tf.newaxis, tf.newaxis, :]) * -1e9
    for i in range(params["layers"]):
        with tf.variable_scope("layer_%d" % i):
            with tf.variable_scope("attention"):
                x += attention(rms_norm(x, "norm"), bias, params["heads"])
            with tf.variable_scope("mlp"):
                y = tf.layers.dense(rms_norm(x, "norm"), 48, activation=gelu, name="in")
                x += tf.layers.dense(y, params["width"], name="out")
    weights = tf.expand_dims(features["mask"], -1)
    pooled = tf.reduce_sum(x * weights, axis=1) / tf.reduce_sum(weights, axis=1)
    value = tf.layers.dense(pooled, 1, name="value")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"value": value, "pooled": pooled})
    loss = tf.losses.huber_loss(labels, value, delta=0.5)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"mse": tf.metrics.mean_squared_error(labels, value)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_global_step()
    learning_rate = tf.train.polynomial_decay(0.02, step, 80, end_learning_rate=0.001, power=1.0)
    train_op = tf.train.RMSPropOptimizer(learning_rate, 0.95).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "frames": rng.normal(size=(64, 10, 5)).astype(np.float32),
        "mask": (np.arange(10) < rng.randint(1, 11, (64, 1))).astype(np.float32),
    }
    labels = rng.normal(size=(64, 1)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)
