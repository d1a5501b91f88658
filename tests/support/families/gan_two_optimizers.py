"""Parity family: generator and discriminator, two Adam optimizers taking turns by tf.cond."""

import numpy as np
import tensorflow.compat.v1 as tf
from legacy_namespace import estimator, tpu

from support.families import input_fns

NOISE, WIDTH, POINTS = 4, 16, 2
PARAMS = {"generator_rate": 5e-3, "discriminator_rate": 1e-2}
TRAIN_BATCH, EVAL_BATCH, PREDICT_BATCH = 16, 16, 8
PREDICT_EXAMPLES = 14


def _examples(seed, count):
    rng = np.random.RandomState(seed)
    angle = rng.uniform(0.0, 2.0 * np.pi, size=count)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.05 * rng.randn(count, POINTS)
    return {"noise": rng.randn(count, NOISE).astype(np.float32)}, ring.astype(np.float32)


train_input_fn, eval_input_fn, predict_input_fn = input_fns(_examples, 128, 96, PREDICT_EXAMPLES)


def _dense(x, units, name):
    with tf.variable_scope(name):
        kernel = tf.get_variable(
            "w", [x.shape.as_list()[-1], units], initializer=tf.random_normal_initializer(0.0, 0.3)
        )
        return tf.matmul(x, kernel) + tf.get_variable(
            "b", [units], initializer=tf.constant_initializer(0.0)
        )


def _generator(noise):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        return _dense(tf.nn.tanh(_dense(noise, WIDTH, "hidden")), POINTS, "out")


def _discriminator(points):
    with tf.variable_scope("discriminator", reuse=tf.AUTO_REUSE):
        return _dense(tf.nn.leaky_relu(_dense(points, WIDTH, "hidden")), 1, "out")


def _cross_entropy(logits, real):
    target = tf.ones_like(logits) if real else tf.zeros_like(logits)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)


def _train_op(discriminator_loss, generator_loss, params):
    """Even steps train the discriminator, odd ones the generator."""
    global_step = tf.train.get_or_create_global_step()
    d_optimizer = tf.train.AdamOptimizer(params["discriminator_rate"], beta1=0.5, name="AdamD")
    g_optimizer = tf.train.AdamOptimizer(params["generator_rate"], beta1=0.5, name="AdamG")
    variables = tf.trainable_variables()
    d_grads = d_optimizer.compute_gradients(
        discriminator_loss, [v for v in variables if v.name.startswith("discriminator/")]
    )
    g_grads = g_optimizer.compute_gradients(
        generator_loss, [v for v in variables if v.name.startswith("generator/")]
    )
    turn = tf.cond(
        tf.equal(tf.mod(global_step, 2), 0),
        lambda: d_optimizer.apply_gradients(d_grads),
        lambda: g_optimizer.apply_gradients(g_grads),
    )
    with tf.control_dependencies([turn]):
        return tf.assign_add(global_step, 1)


def _metric_fn(real, fake, generator_loss):
    return {
        "real_score": tf.metrics.mean(tf.sigmoid(real)),
        "fake_score": tf.metrics.mean(tf.sigmoid(fake)),
        "generator_loss": tf.metrics.mean(generator_loss),
    }


def model_fn(features, labels, mode, params):
    made = _generator(features["noise"])
    fake = _discriminator(made)
    if mode == estimator.ModeKeys.PREDICT:
        predictions = {"points": made, "score": tf.squeeze(tf.sigmoid(fake), axis=1)}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)

    real = _discriminator(labels)
    per_example = _cross_entropy(fake, real=True)
    generator_loss = tf.reduce_mean(per_example)
    discriminator_loss = tf.reduce_mean(_cross_entropy(real, True) + _cross_entropy(fake, False))
    loss = tf.add(discriminator_loss, generator_loss, name="total_loss")
    if mode == estimator.ModeKeys.TRAIN:
        train_op = _train_op(discriminator_loss, generator_loss, params)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    metrics = (_metric_fn, [real, fake, per_example])
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
