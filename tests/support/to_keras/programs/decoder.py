"""A language model: a decoder whose first block is used three times, with a tied embedding."""

import numpy as np
import tensorflow as tf

PARAMS = {"vocab": 100, "width": 32, "heads": 4, "shared": 3, "own": 2, "dropout": 0.1}


def split_heads(x, heads):
    batch, length, width = tf.shape(x)[0], tf.shape(x)[1], x.shape[-1].value
    return tf.transpose(tf.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def self_attention(x, heads, rate, training):
    width = x.shape[-1].value
    q = split_heads(tf.layers.dense(x, width, use_bias=False, name="q"), heads)
    k = split_heads(tf.layers.dense(x, width, use_bias=False, name="k"), heads)
    v = split_heads(tf.layers.dense(x, width, use_bias=False, name="v"), heads)
    scores = tf.matmul(q, k, transpose_b=True) * (width // heads) ** -0.5
    length = tf.shape(x)[1]
    mask = tf.matrix_band_part(tf.ones([length, length]), -1, 0)
    scores += (1.0 - mask) * -1e9
    weights = tf.layers.dropout(tf.nn.softmax(scores), rate, training=training)
    context = tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])
    context = tf.reshape(context, tf.shape(x))
    context.set_shape(x.shape)
    return tf.layers.dense(context, width, use_bias=False, name="output")


def block(x, params, training, name, reuse=None):
    with tf.variable_scope(name, reuse=reuse):
        with tf.variable_scope("attention"):
            y = tf.contrib.layers.layer_norm(x, begin_norm_axis=-1, scope="norm")
            y = self_attention(y, params["heads"], params["dropout"], training)
            x += tf.layers.dropout(y, params["dropout"], training=training)
        with tf.variable_scope("ffn"):
            y = tf.contrib.layers.layer_norm(x, begin_norm_axis=-1, scope="norm")
            y = tf.layers.dense(y, 4 * params["width"], tf.nn.relu, name="inner")
            y = tf.layers.dense(y, params["width"], name="outer")
            x += tf.layers.dropout(y, params["dropout"], training=training)
    return x


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    ids = features["ids"]
    with tf.variable_scope("decoder"):
        embedding = tf.get_variable(
            "embedding",
            [params["vocab"], params["width"]],
            initializer=tf.random_normal_initializer(stddev=params["width"] ** -0.5),
        )
        positions = tf.get_variable(
            "positions", [64, params["width"]], initializer=tf.random_normal_initializer(stddev=0.1)
        )
        x = tf.nn.embedding_lookup(embedding, ids) * params["width"] ** 0.5
        x += positions[: tf.shape(ids)[1]]
        for i in range(params["shared"]):
            x = block(x, params, training, "shared", reuse=i > 0)
        for i in range(params["own"]):
            x = block(x, params, training, "own_%d" % i)
        x = tf.contrib.layers.layer_norm(x, begin_norm_axis=-1, scope="norm")
        logits = tf.tensordot(x, embedding, [[2], [1]])
    predictions = {
        "next": tf.argmax(logits[:, -1], axis=-1),
        "log_probs": tf.nn.log_softmax(logits),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    weights = tf.to_float(tf.not_equal(labels, 0))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=weights)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, -1), weights)}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    step = tf.train.get_global_step()
    warmup = tf.minimum(1.0, tf.to_float(step + 1) / 40.0)
    learning_rate = 0.05 * params["width"] ** -0.5 * warmup
    optimizer = tf.train.AdamOptimizer(learning_rate, beta2=0.98, epsilon=1e-9)
    train_op = optimizer.minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    ids = rng.randint(1, 100, (64, 17)).astype(np.int32)
    ids[:, 12:] *= rng.randint(0, 2, (64, 1))
    data = {"ids": ids[:, :-1]}, ids[:, 1:]
    return tf.data.Dataset.from_tensor_slices(data).repeat().batch(8)
