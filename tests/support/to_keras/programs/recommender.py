"""A recommender: bags of items and tags, each the mean or sum of its embeddings."""

import numpy as np
import tensorflow as tf

PARAMS = {"users": 50, "items": 120, "tags": 30, "width": 8}


def bag(ids, size, width, combiner, name):
    """Ids of -1 stand for nothing."""
    with tf.variable_scope(name):
        table = tf.get_variable(
            "table", [size, width], initializer=tf.truncated_normal_initializer(stddev=0.3)
        )
        where = tf.where(tf.not_equal(ids, -1))
        sparse = tf.SparseTensor(where, tf.gather_nd(ids, where), tf.shape(ids, out_type=tf.int64))
        return tf.nn.embedding_lookup_sparse(table, sparse, None, combiner=combiner)


def model_fn(features, labels, mode, params):
    width = params["width"]
    with tf.variable_scope("user"):
        users = tf.get_variable("table", [params["users"], width])
        user = tf.nn.embedding_lookup(users, features["user"])
    seen = bag(features["seen"], params["items"], width, "mean", "seen")
    tags = bag(features["tags"], params["tags"], width, "sum", "tags")
    with tf.variable_scope("item"):
        items = tf.get_variable("table", [params["items"], width])
        bias = tf.get_variable("bias", [params["items"]], initializer=tf.zeros_initializer())
        item = tf.nn.embedding_lookup(items, features["item"])
        item_bias = tf.nn.embedding_lookup(bias, features["item"])
    query = tf.concat([user, seen, tags], axis=1)
    query = tf.layers.dense(query, 16, activation=tf.nn.relu, name="query_1")
    query = tf.layers.dense(query, width, name="query_2")
    query = tf.nn.l2_normalize(query, axis=1)
    score = tf.reduce_sum(query * item, axis=1) + item_bias
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": score})
    loss = tf.losses.mean_squared_error(labels, score)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {
            "rmse": tf.metrics.root_mean_squared_error(labels, score),
            "mae": tf.metrics.mean_absolute_error(labels, score),
        }
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
    optimizer = tf.train.AdagradOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    rng = np.random.RandomState(0)

    def ids(size, most):
        drawn = rng.randint(0, size, (128, most))
        return np.where(np.arange(most) < rng.randint(1, most + 1, (128, 1)), drawn, -1)

    features = {
        "user": rng.randint(0, 50, 128),
        "item": rng.randint(0, 120, 128),
        "seen": ids(120, 6),
        "tags": ids(30, 3),
    }
    ratings = rng.uniform(1, 5, 128).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((features, ratings)).repeat().batch(16)
