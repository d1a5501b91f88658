"""Sound model_fns of many kinds: no check may find a fault in them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tpu_estimator_compat.v1 as tf

from .models import (
    CLASSES,
    EVAL,
    PREDICT,
    SIZE,
    WIDTH,
    X,
    Y,
    classifier,
    gradient_descent,
    train_with_updates,
    train_wrapped,
)

WORDS = 12
IDS = np.random.RandomState(1).randint(0, WORDS - 2, size=(SIZE, 3)).astype(np.int32)


class Sound(NamedTuple):
    model_fn: Callable[..., Any]
    features: Any = X
    labels: Any = Y


def embedded(features, training):
    table = tf.get_variable("table", [WORDS, 4], initializer=tf.random_normal_initializer())
    return tf.layers.dense(tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1), CLASSES)


def recurrent(features, training):
    cell = tf.nn.rnn_cell.LSTMCell(5)
    outputs, _ = tf.nn.dynamic_rnn(cell, features[:, :, None], dtype=tf.float32)
    return tf.layers.dense(outputs[:, -1], CLASSES)


def looped(features, training):
    kernel = tf.get_variable("kernel", [WIDTH, WIDTH])
    _, found = tf.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, tf.tanh(tf.matmul(x, kernel))), [0, features]
    )
    return tf.layers.dense(found, CLASSES)


def normalized(features, training):
    hidden = tf.layers.dense(features, 6)
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.5)
    return tf.layers.dense(tf.nn.relu(hidden), CLASSES)


def normalized_images(features, training):
    images = tf.reshape(features, [-1, 2, 2, 1])
    hidden = tf.layers.conv2d(images, 3, 2, padding="same")
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.5)
    return tf.layers.dense(tf.layers.flatten(tf.nn.relu(hidden)), CLASSES)


def slim_normalized(features, training):
    slim = tf.contrib.slim
    hidden = slim.fully_connected(
        features, 6, normalizer_fn=slim.batch_norm, normalizer_params={"is_training": training}
    )
    return slim.fully_connected(hidden, CLASSES, activation_fn=None)


def dropped(features, training):
    hidden = tf.layers.dense(features, 16)
    return tf.layers.dense(tf.layers.dropout(hidden, 0.2, training=training), CLASSES)


def of_dict(features, training):
    parts = [tf.layers.dense(features["x"], 4), tf.one_hot(features["id"], 3)]
    return tf.layers.dense(tf.concat(parts, axis=1), CLASSES)


def of_tuple(features, training):
    return of_dict(dict(zip(("x", "id"), features, strict=True)), training)


def halved(features, training):
    return tf.cast(tf.layers.dense(tf.cast(features, tf.bfloat16), CLASSES), tf.float32)


def frozen(features, training):
    hidden = tf.layers.dense(features, 8, activation=tf.tanh, name="frozen", trainable=False)
    return tf.layers.dense(hidden, CLASSES)


def weighted_loss(labels, logits, params):
    weights = 1.0 + tf.cast(labels, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_sum(weights * losses) / params["batch_size"]


def train_averaged(loss):
    averages = tf.train.ExponentialMovingAverage(0.5, tf.train.get_global_step())
    with tf.control_dependencies([train_wrapped(loss)]):
        return averages.apply(tf.trainable_variables())


def train_accumulated(loss):
    """Applies the mean of two steps' gradients in every other step."""
    optimizer = gradient_descent()
    pairs = [(tf.tpu.cross_replica_sum(g), v) for g, v in optimizer.compute_gradients(loss)]
    step = tf.train.get_global_step()
    sums = [
        tf.get_variable(f"sum_{i}", v.shape, initializer=tf.zeros_initializer(), trainable=False)
        for i, (_, v) in enumerate(pairs)
    ]
    added = [s.assign_add(g) for s, (g, _) in zip(sums, pairs, strict=True)]

    def apply():
        means = [(s / 2.0, v) for s, (_, v) in zip(sums, pairs, strict=True)]
        with tf.control_dependencies([optimizer.apply_gradients(means)]):
            return tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])

    with tf.control_dependencies(added):
        applied = tf.cond(tf.equal(step % 2, 1), apply, tf.no_op)
        with tf.control_dependencies([applied]):
            return step.assign_add(1)


def train_scaled(loss):
    """In the manner of loss scaling: gradients of a large loss, made small again."""
    optimizer = tf.tpu.CrossShardOptimizer(gradient_descent())
    pairs = optimizer.compute_gradients(loss * 128.0)
    small = [(g / 128.0, v) for g, v in pairs]
    return optimizer.apply_gradients(small, tf.train.get_global_step())


def train_clipped_sum(loss):
    """Clips what is added up over replicas."""
    variables = tf.trainable_variables()
    gradients = [tf.tpu.cross_replica_sum(g) for g in tf.gradients(loss, variables)]
    clipped, _ = tf.clip_by_global_norm(gradients, 0.1)
    pairs = zip(clipped, variables, strict=True)
    return gradient_descent().apply_gradients(pairs, tf.train.get_global_step())


def train_adam(loss):
    return train_wrapped(loss, tf.train.AdamOptimizer(0.05))


def generator_and_critic(features, labels, mode, params):
    """Two networks, an optimizer each; labels are numbers here."""
    noise = features[:, :2]
    with tf.variable_scope("generator"):
        made = tf.layers.dense(tf.tanh(tf.layers.dense(noise, 6)), WIDTH)
    if mode == PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"made": made})
    with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
        scores = [tf.layers.dense(x, 1, name="score") for x in (made, features)]
    critic_loss = tf.reduce_mean(tf.nn.softplus(scores[0])) + tf.reduce_mean(
        tf.nn.softplus(-scores[1])
    )
    loss = tf.reduce_mean(tf.square(made - features)) + 0.1 * tf.reduce_mean(
        tf.nn.softplus(-scores[0])
    )
    if mode == EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss)
    steps = []
    for scope, value, step in (
        ("critic", critic_loss, None),
        ("generator", loss, tf.train.get_global_step()),
    ):
        optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.02, beta1=0.5))
        variables = tf.trainable_variables(scope)
        steps.append(optimizer.minimize(value, step, var_list=variables))
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=tf.group(*steps))


def without_params(features, labels, mode):
    return classifier()(features, labels, mode, {})


def host_calls(logits):
    def host_call(step, mean):
        return tf.identity(step)

    return host_call, [tf.reshape(tf.train.get_or_create_global_step(), [1]), logits]


def scaffolds(logits):
    return lambda: tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=1))


SOUND = {
    "dense": Sound(classifier()),
    "adam": Sound(classifier(train=train_adam)),
    "embedding": Sound(classifier(embedded), IDS),
    "lstm": Sound(classifier(recurrent, train=train_adam)),
    "while_loop": Sound(classifier(looped, train=train_adam)),
    "batch_norm": Sound(classifier(normalized, train=train_with_updates)),
    "batch_norm_images": Sound(classifier(normalized_images, train=train_with_updates)),
    "slim_batch_norm": Sound(classifier(slim_normalized, train=train_with_updates)),
    "dropout": Sound(classifier(dropped)),
    "dict": Sound(classifier(of_dict), {"x": X, "id": Y}),
    "tuple": Sound(classifier(of_tuple), (X, Y)),
    "bfloat16": Sound(classifier(halved)),
    "float64": Sound(classifier(), X.astype(np.float64)),
    "frozen": Sound(classifier(frozen)),
    "weighted": Sound(classifier(loss_of=weighted_loss)),
    "averages": Sound(classifier(train=train_averaged)),
    "accumulation": Sound(classifier(train=train_accumulated)),
    "loss_scale": Sound(classifier(train=train_scaled)),
    "clipped_sum": Sound(classifier(train=train_clipped_sum)),
    "gan": Sound(generator_and_critic),
    "without_params": Sound(without_params),
    "host_call": Sound(classifier(host_call=host_calls)),
    "scaffold": Sound(classifier(scaffold_fn=scaffolds)),
}
