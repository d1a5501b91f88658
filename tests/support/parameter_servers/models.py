"""Models for parameter servers: a line, and recommenders in the manner of public ones.

Each function of `tf`, TensorFlow 1 with its estimators, and of a RunConfig returns an estimator and
its input_fn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

USERS, ITEMS, HISTORY = 40, 60, 5
EXAMPLES, BATCH = 960, 96


def line(tf: Any, config: Any) -> Any:
    """Linear regression on whole batches, whose weights lie on two servers."""
    return tf.estimator.Estimator(_line(tf, lambda optimizer, hooks: optimizer), config=config), (
        lambda: tf.data.Dataset.from_tensors(_line_data()).repeat()
    )


def synchronous_line(tf: Any, config: Any) -> Any:
    """The same, where the chief applies the mean of all workers' gradients."""
    count = config.num_worker_replicas

    def wrapped(optimizer: Any, hooks: list[Any]) -> Any:
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, count, count)
        hooks += [optimizer.make_session_run_hook(config.is_chief), _ends_soon(tf)]
        return optimizer

    return tf.estimator.Estimator(_line(tf, wrapped), config=config), line(tf, config)[1]


def _ends_soon(tf: Any) -> Any:
    """A hook for TensorFlow's wait of two minutes at the end for a thread that takes gradients.

    None come any more where the worker has ended first.
    """

    class EndsSoon(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            join = coord.join
            coord.join = lambda *threads, **options: join(
                *threads, **{**options, "stop_grace_period_secs": 2}
            )

    return EndsSoon()


def _line_data() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    return x, x.sum(1, keepdims=True)


def _line(tf: Any, wrapped: Any) -> Any:
    def model_fn(features, labels, mode):
        weights = tf.get_variable(
            "weights",
            [4, 1],
            partitioner=tf.fixed_size_partitioner(2),
            initializer=tf.zeros_initializer(),
        )
        loss = tf.losses.mean_squared_error(
            labels, tf.matmul(features, tf.convert_to_tensor(weights))
        )
        hooks: list[Any] = []
        optimizer = wrapped(tf.train.MomentumOptimizer(0.05, 0.5), hooks)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=train_op,
            training_hooks=hooks,
            eval_metric_ops={"mean_loss": tf.metrics.mean(loss)},
        )

    return model_fn


def wide_and_deep(tf: Any, config: Any) -> Any:
    """Crossed ids for memory, embeddings for generality; every table is on two servers."""
    column = tf.feature_column
    user = column.categorical_column_with_hash_bucket("user", USERS, tf.int64)
    item = column.categorical_column_with_hash_bucket("item", ITEMS, tf.int64)
    wide = [user, item, column.crossed_column(["user", "item"], 500)]
    deep = [column.embedding_column(each, 8) for each in (user, item)]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        dnn_feature_columns=[*deep, column.numeric_column("age")],
        dnn_hidden_units=[16, 8],
        dnn_optimizer=tf.train.AdamOptimizer(0.01),
        input_layer_partitioner=tf.fixed_size_partitioner(2),
        config=config,
    )
    return estimator, _visits(tf)


def interest_network(tf: Any, config: Any) -> Any:
    """A factorization machine beside attention over the items that a user saw before."""
    return tf.estimator.Estimator(_interest(tf), config=config), _visits(tf)


def _interest(tf: Any) -> Any:
    def table(name, width):
        return tf.get_variable(
            name,
            [USERS + ITEMS, width],
            partitioner=tf.fixed_size_partitioner(2),
            initializer=tf.random_normal_initializer(stddev=0.1, seed=1),
        )

    def model_fn(features, labels, mode):
        embeddings, weights = table("embeddings", 8), table("weights", 1)
        ids = tf.stack([features["user"], features["item"] + USERS], 1)
        pair = tf.nn.embedding_lookup(embeddings, ids, "div")
        seen = tf.nn.embedding_lookup(embeddings, features["history"] + USERS, "div")
        first = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids, "div"), 1)
        squares = tf.square(tf.reduce_sum(pair, 1)) - tf.reduce_sum(tf.square(pair), 1)
        attention = tf.nn.softmax(tf.reduce_sum(seen * pair[:, 1:], 2))
        interest = tf.reduce_sum(seen * attention[:, :, None], 1)
        deep = tf.concat([tf.layers.flatten(pair), interest], 1)
        for units in (16, 8):
            deep = tf.layers.dense(deep, units, tf.nn.relu)
        logits = first + tf.reduce_sum(squares, 1, keepdims=True) / 2 + tf.layers.dense(deep, 1)
        loss = tf.losses.sigmoid_cross_entropy(labels, logits)
        train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        right = tf.metrics.accuracy(labels, tf.cast(logits > 0, tf.int64))
        metrics = {"accuracy": right, "auc": tf.metrics.auc(labels, tf.sigmoid(logits))}
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops=metrics
        )

    return model_fn


def _visits(tf: Any) -> Any:
    """Whether users like items: by two hidden numbers of each."""
    random = np.random.RandomState(2)
    tastes, kinds = random.randn(USERS, 2), random.randn(ITEMS, 2)
    user, item = random.randint(USERS, size=EXAMPLES), random.randint(ITEMS, size=EXAMPLES)
    features = {
        "user": user,
        "item": item,
        "history": random.randint(ITEMS, size=(EXAMPLES, HISTORY)),
        "age": random.rand(EXAMPLES).astype(np.float32),
    }
    liked = (np.sum(tastes[user] * kinds[item], 1, keepdims=True) > 0).astype(np.int64)

    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((features, liked))
        return dataset.shuffle(EXAMPLES, seed=3).repeat().batch(BATCH)

    return input_fn
