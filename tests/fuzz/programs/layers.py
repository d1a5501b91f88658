"""What a model computes of its examples: a prediction for each."""

import numpy as np
import tensorflow.compat.v1 as tf
from programs.inputs import WIDTH


def x_of(features):
    if isinstance(features, dict):
        if not features:
            return tf.constant(np.arange(2 * WIDTH, dtype=np.float32).reshape(2, WIDTH) / 8.0)
        return features["x"]
    return features[0] if isinstance(features, tuple) else features


def initializer(choices, number=0):
    kind = choices["initial"]
    if kind == "zeros":
        return tf.constant_initializer(0.1 * (number + 1))
    if kind == "seeded":
        return tf.random_uniform_initializer(-0.5, 0.5, seed=20 + number)
    return None


def prediction_of(choices, x, training):
    hidden = MODELS[choices["model"]](choices, x, training)
    hidden = _normalized(choices, hidden, training)
    hidden = _disturbed(choices, hidden, training)
    if hidden.shape[-1] != 1:
        hidden = tf.layers.dense(hidden, 1, kernel_initializer=initializer(choices, 9), name="last")
    prediction = tf.identity(hidden, "prediction")
    tf.add(tf.reduce_mean(prediction), 1.0, "the_mean")  # whose digits are not those of a zero
    return prediction


def _normalized(choices, hidden, training):
    if choices["normalization"] == "batch":
        return tf.layers.batch_normalization(hidden, training=training, momentum=0.8)
    if choices["normalization"] == "layer":
        mean, variance = tf.nn.moments(hidden, [-1], keep_dims=True)
        return tf.nn.batch_normalization(hidden, mean, variance, None, None, 1e-2) + hidden
    return hidden


def _disturbed(choices, hidden, training):
    if choices["dropout"] != "none":
        seed = 31 if choices["dropout"] == "seeded" else None
        hidden = tf.layers.dropout(hidden, 0.3, seed=seed, training=training)
    if choices["noise"] != "none" and training:
        seed = 33 if choices["noise"] == "seeded" else None
        hidden += tf.random.normal(tf.shape(hidden), stddev=0.05, seed=seed)
    return hidden


def _linear(choices, x, training):
    weight = tf.get_variable("w", [WIDTH, 1], initializer=initializer(choices))
    bias = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    return tf.matmul(x, weight) + bias


def _dense(choices, x, training):
    with tf.variable_scope("body"):
        hidden = tf.layers.dense(x, 3, tf.nn.tanh, kernel_initializer=initializer(choices))
        return tf.layers.dense(
            hidden,
            2,
            tf.nn.relu,
            kernel_initializer=initializer(choices, 1),
            bias_initializer=tf.constant_initializer(0.2),
        )


def _convolution(choices, x, training):
    image = tf.reshape(x, [-1, 2, 2, 1])
    hidden = tf.layers.conv2d(image, 2, 2, padding="same", kernel_initializer=initializer(choices))
    hidden = tf.layers.batch_normalization(hidden, training=training, momentum=0.7)
    hidden = tf.layers.max_pooling2d(tf.nn.relu(hidden), 2, 1)
    return tf.layers.flatten(hidden)


def _recurrent(choices, x, training):
    cell = tf.nn.rnn_cell.LSTMCell(2, initializer=initializer(choices))
    outputs, _ = tf.nn.dynamic_rnn(cell, tf.reshape(x, [-1, WIDTH, 1]), dtype=tf.float32)
    return outputs[:, -1]


def _gru(choices, x, training):
    cells = [
        tf.nn.rnn_cell.GRUCell(2, kernel_initializer=initializer(choices, each)) for each in (0, 1)
    ]
    cell = tf.nn.rnn_cell.MultiRNNCell(cells)
    outputs, _ = tf.nn.dynamic_rnn(
        cell, tf.reshape(x, [-1, 2, 2]), sequence_length=_ones_of(x) * 2, dtype=tf.float32
    )
    return outputs[:, -1]


def _ones_of(x):
    return tf.ones([tf.shape(x)[0]], tf.int32)


def _embedding(choices, x, training):
    table = tf.get_variable("table", [5, 2], initializer=initializer(choices))
    ids = tf.cast(tf.abs(x) * 4.99, tf.int64)
    return tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)


def _sparse_embedding(choices, x, training):
    table = tf.get_variable("table", [5, 2], initializer=initializer(choices))
    ids = tf.cast(tf.abs(x) * 4.99, tf.int64)
    places = tf.where(tf.greater(ids, 0))
    sparse = tf.SparseTensor(places, tf.gather_nd(ids, places), tf.cast(tf.shape(ids), tf.int64))
    found = tf.nn.safe_embedding_lookup_sparse(table, sparse, combiner="mean")
    found.set_shape([None, 2])
    return found


def _while_loop(choices, x, training):
    weight = tf.get_variable("w", [WIDTH, WIDTH], initializer=initializer(choices))

    def body(i, hidden):
        return i + 1, tf.tanh(tf.matmul(hidden, weight))

    return tf.while_loop(lambda i, hidden: i < 3, body, [tf.constant(0), x])[1]


def _map_fn(choices, x, training):
    weight = tf.get_variable("w", [WIDTH], initializer=initializer(choices))
    hidden = tf.map_fn(lambda row: row * weight, x)
    return tf.reduce_sum(hidden, 1, keepdims=True)


def _cond(choices, x, training):
    one = tf.get_variable("one", [WIDTH, 2], initializer=initializer(choices))
    other = tf.get_variable("other", [WIDTH, 2], initializer=initializer(choices, 1))
    positive = tf.reduce_mean(x) > 0
    return tf.cond(positive, lambda: tf.matmul(x, one), lambda: tf.tanh(tf.matmul(x, other)))


def _partitioned(choices, x, training):
    first = initializer(choices) if choices["initial"] != "zeros" else tf.zeros_initializer()
    weight = tf.get_variable(
        "w", [WIDTH, 2], initializer=first, partitioner=tf.fixed_size_partitioner(2)
    )
    return tf.matmul(x, tf.convert_to_tensor(weight)) + 0.5


def _reused(choices, x, training):
    def layer(given):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            weight = tf.get_variable("w", [WIDTH, 2], initializer=initializer(choices))
            return tf.matmul(given, weight)

    return tf.nn.softplus(layer(x)) - layer(tf.square(x))


def _columns(choices, x, training):
    column = tf.feature_column.numeric_column("x", shape=[WIDTH])
    buckets = tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column("first"), [-0.5, 0.0, 0.5]
    )
    given = {"x": x, "first": x[:, :1]}
    return tf.feature_column.input_layer(given, [buckets, column])


def _template(choices, x, training):
    def layer(given):
        return tf.layers.dense(given, 2, kernel_initializer=initializer(choices), name="inner")

    shared = tf.make_template("made", layer)
    return shared(x) + shared(-x[:, ::-1])


MODELS = {
    "linear": _linear,
    "dense": _dense,
    "convolution": _convolution,
    "recurrent": _recurrent,
    "gru": _gru,
    "embedding": _embedding,
    "sparse_embedding": _sparse_embedding,
    "while_loop": _while_loop,
    "map_fn": _map_fn,
    "cond": _cond,
    "partitioned": _partitioned,
    "reused": _reused,
    "columns": _columns,
    "template": _template,
}


def loss_of(choices, labels, prediction):
    kind = choices["loss"]
    if kind == "square":
        loss = tf.reduce_mean(tf.square(prediction - labels))
    elif kind == "losses":
        loss = tf.losses.mean_squared_error(labels, prediction)
    elif kind == "huber":
        loss = tf.losses.huber_loss(labels, prediction, delta=0.5)
    elif kind == "weighted":
        weights = tf.cast(labels > 0, tf.float32) + 0.5
        loss = tf.losses.mean_squared_error(labels, prediction, weights)
    elif kind == "absolute":
        loss = tf.losses.absolute_difference(labels, prediction)
    else:
        loss = tf.losses.sigmoid_cross_entropy(tf.cast(labels > 0, tf.float32), prediction)
    if choices["regularization"] == "l2":
        for variable in tf.trainable_variables():
            tf.losses.add_loss(0.01 * tf.nn.l2_loss(variable), tf.GraphKeys.REGULARIZATION_LOSSES)
        loss += tf.losses.get_regularization_loss()
    if choices["aside"] == "loss":
        collected = tf.losses.get_losses()
        loss += tf.add_n([tf.reduce_sum(each) for each in collected])
    aside = tf.get_collection("aside")
    if aside:
        loss += tf.reduce_sum(aside[0])
    return loss
