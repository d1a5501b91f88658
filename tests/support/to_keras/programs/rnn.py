"""A classifier of texts: `dynamic_rnn` over sequences of different lengths."""

import numpy as np
import tensorflow as tf

PARAMS = {
    "cell": "lstm",
    "vocab": 200,
    "width": 16,
    "units": 24,
    "layers": 1,
    "both": False,
    "keep": 1.0,
}


def make_cell(params):
    def one():
        if params["cell"] == "gru":
            return tf.nn.rnn_cell.GRUCell(params["units"])
        return tf.nn.rnn_cell.BasicLSTMCell(params["units"], forget_bias=1.0)

    if params["layers"] == 1:
        return one()
    cells = [one() for _ in range(params["layers"])]
    if params["dropout"]:
        keep = 1.0 - params["dropout"]
        cells = [tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=keep) for cell in cells]
    return tf.nn.rnn_cell.MultiRNNCell(cells)


def encode(embedded, lengths, params):
    if params["both"]:
        outputs, _ = tf.nn.bidirectional_dynamic_rnn(
            make_cell(params), make_cell(params), embedded, lengths, dtype=tf.float32
        )
        return tf.concat(outputs, -1)
    outputs, _ = tf.nn.dynamic_rnn(make_cell(params), embedded, lengths, dtype=tf.float32)
    return outputs


def model_fn(features, labels, mode, params):
    with tf.variable_scope("embed"):
        table = tf.get_variable("table", [params["vocab"], params["width"]])
        embedded = tf.nn.embedding_lookup(table, features["tokens"])
    lengths = features["length"]
    if mode != tf.estimator.ModeKeys.TRAIN:
        params = {**params, "dropout": 0.0}
    outputs = encode(embedded, lengths, params)
    mask = tf.sequence_mask(lengths, tf.shape(outputs)[1], dtype=tf.float32)
    total = tf.reduce_sum(outputs * tf.expand_dims(mask, -1), axis=1)
    pooled = total / tf.expand_dims(tf.to_float(lengths), 1)
    logits = tf.layers.dense(pooled, 1, name="logits")
    logits = tf.squeeze(logits, axis=1)
    probability = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"probability": probability})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "auc": tf.metrics.auc(labels, probability),
            "precision": tf.metrics.precision(labels, probability > 0.5),
            "recall": tf.metrics.recall(labels, probability > 0.5),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdamOptimizer(0.01)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "tokens": rng.randint(0, 200, (64, 12)).astype(np.int64),
        "length": rng.randint(1, 13, 64).astype(np.int32),
    }
    labels = (features["length"] > 6).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)
