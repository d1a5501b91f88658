"""Reports about canned estimators, heads and feature columns."""

import numpy as np
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from scenarios import models

_COLUMN = tf.feature_column


def _data(labels, **features):
    x = {"x": np.array([[0.1], [0.9], [0.4], [0.8]], np.float32), **features}
    return lambda: tf.data.Dataset.from_tensors((x, np.array(labels))).repeat(3)


def _x():
    return _COLUMN.numeric_column("x")


def _tried(record, make, input_fn, what=("loss", "average_loss")):
    """Trains, evaluates and predicts; of an error its type and first line."""
    try:
        est = make()
        est.train(input_fn, steps=2)
        told = est.evaluate(input_fn, steps=1)
        record({key: told[key] for key in what if key in told})
        record(sorted(next(iter(est.predict(input_fn)))))
    except Exception as error:
        record(type(error).__name__, str(error).strip().splitlines()[0][:150])


def weights_of_wrong_shapes(model_dir, record):
    """After tensorflow#8043: weight columns by name and as columns; weights that do not fit."""
    for name, weights in (
        ("vector", [1.0, 2.0, 3.0, 0.0]),
        ("column", [[1.0], [2.0], [3.0], [0.0]]),
        ("ints", [1, 2, 3, 0]),
        ("short", [1.0, 2.0]),
        ("wide", [[1.0, 1.0]] * 4),
    ):
        data = _data([0, 1, 1, 0], w=np.array(weights, np.float32 if name != "ints" else np.int64))

        def make(name=name):
            return tf.estimator.LinearClassifier(
                [_x()], f"{model_dir}/{name}", weight_column="w", optimizer="SGD"
            )

        _tried(record, make, data)


def labels_that_do_not_fit(model_dir, record):
    """After tensorflow#10253, #21471: labels that are text, floats, a matrix, or out of range."""
    for name, labels, more in (
        ("float", [0.0, 1.0, 1.0, 0.0], {}),
        ("text", ["a", "b", "b", "a"], {}),
        ("vocabulary", ["a", "b", "b", "a"], {"label_vocabulary": ["a", "b"]}),
        ("unknown", ["a", "b", "b", "c"], {"label_vocabulary": ["a", "b"]}),
        ("range", [0, 1, 2, 3], {}),
        ("three", [0, 1, 2, 0], {"n_classes": 3}),
        ("far", [0, 1, 3, 0], {"n_classes": 3}),
        ("matrix", [[0, 1], [1, 0], [1, 0], [0, 1]], {}),
        ("names of two", [0, 1, 1, 0], {"label_vocabulary": ["a", "b"]}),
    ):

        def make(name=name, more=more):
            return tf.estimator.LinearClassifier([_x()], f"{model_dir}/{name}", **more)

        _tried(record, make, _data(labels))


def an_optimizer_that_decays(model_dir, record):
    """After tensorflow#20812: an optimizer of a canned model whose rate decays, as a function."""

    def decaying(kind=tf.train.GradientDescentOptimizer):
        step = tf.train.get_global_step()
        rate = tf.train.exponential_decay(0.5, step, 1, 0.5)
        tf.summary.scalar("rate", rate)
        return kind(rate)

    est = tf.estimator.DNNRegressor(
        feature_columns=[_x()],
        model_dir=model_dir,
        config=tf.estimator.RunConfig(tf_random_seed=1, save_summary_steps=1),
        hidden_units=[2],
        optimizer=decaying,
    )
    models.attempt(record, est.train, _data([[0.1], [0.2], [0.3], [0.4]]), steps=3)
    record(est.get_variable_names())


def sums_of_many_values(model_dir, record):
    """After tensorflow#25406: embeddings of several values, by combiners, with padding."""
    ids = np.array([["a", "b", ""], ["b", "", ""], ["", "", ""], ["c", "c", "a"]])

    def model_fn(features, labels, mode, params):
        hashed = _COLUMN.categorical_column_with_hash_bucket("ids", 5)
        ones = tf.ones_initializer()
        embedded = _COLUMN.embedding_column(hashed, 2, params["by"], ones, max_norm=1.0)
        bucket = _COLUMN.indicator_column(_COLUMN.bucketized_column(_x(), [0.3, 0.6]))
        summed = tf.reduce_sum(_COLUMN.input_layer(features, [embedded, bucket]), 1)
        record(mode, [v.op.name for v in tf.trainable_variables()])
        loss = tf.reduce_mean(tf.square(summed - tf.cast(labels, tf.float32)))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    for combiner in ("sum", "mean", "sqrtn", "other"):
        est = models.estimator(f"{model_dir}/{combiner}", model_fn, {"by": combiner})
        models.attempt(record, est.train, _data([0, 1, 1, 0], ids=ids), steps=2)


def shared_embeddings(model_dir, record):
    """After tensorflow#47037, #50533, ranking#114: columns that share, of both versions."""
    ids = {"a": np.array([0, 1, 2, 1]), "b": np.array([2, 2, 0, 1])}

    def columns():
        return [_COLUMN.categorical_column_with_identity(key, 3) for key in ids]

    makers = {
        "v2": lambda: tf2.compat.v2.feature_column.shared_embeddings(
            columns(), 2, initializer=tf.ones_initializer()
        ),
        "v1": lambda: _COLUMN.shared_embedding_columns(
            columns(), 2, initializer=tf.ones_initializer()
        ),
    }
    for name, shared in makers.items():
        for kind in ("v1", "v2"):
            estimator = (tf if kind == "v1" else tf2.compat.v2).estimator.LinearRegressor
            folder = f"{model_dir}/{name}-{kind}"

            def make(shared=shared, estimator=estimator, folder=folder):
                return estimator(shared(), folder, optimizer="SGD")

            _tried(record, make, _data([0.0, 1.0, 2.0, 1.0], **ids))

    class Shared:
        @staticmethod
        def of(features, labels, mode):
            hidden = tf.feature_column.input_layer(features, makers["v1"]())
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(hidden, 1) - tf.cast(labels, tf.float32)))
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    est = models.estimator(f"{model_dir}/own", Shared.of)
    models.attempt(record, est.train, _data([0, 1, 2, 1], **ids), steps=2)


def sequences_of_columns(model_dir, record):
    """After tensorflow#42099, #32341: sequence columns in an input_layer, and as they should."""
    ids = {"ids": np.array([[0, 1, 2], [1, -1, -1], [2, 2, -1], [0, -1, -1]])}
    column = _COLUMN.sequence_categorical_column_with_identity("ids", 3)
    embedded = _COLUMN.embedding_column(column, 2, initializer=tf.ones_initializer())

    def wrong(features, labels, mode):
        return tf.reduce_sum(tf.feature_column.input_layer(features, [embedded]))

    def right(features, labels, mode):
        layer = tf.keras.experimental.SequenceFeatures([embedded])
        hidden, length = layer(features)
        return tf.reduce_sum(hidden) * tf.cast(tf.reduce_sum(length), tf.float32)

    for make in (wrong, right):

        def model_fn(features, labels, mode, params):
            loss = params["make"](features, labels, mode) * 0.125
            return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

        est = models.estimator(f"{model_dir}/{make.__name__}", model_fn, {"make": make})
        try:
            est.train(_data([0, 1, 2, 1], **ids), steps=2)
            record(est.get_variable_names(), est.evaluate(_data([0, 1, 2, 1], **ids)))
        except Exception as error:
            record(type(error).__name__, str(error).splitlines()[0][:100])


def two_heads_of_one_model(model_dir, record):
    """After tfx#310, tensorflow#17356: labels of two heads, one with a weight, of a model_fn."""
    v2 = tf2.compat.v2.estimator
    labels = {"class": np.array([[0], [1], [1], [0]]), "value": np.ones([4, 1], np.float32)}
    x = {"x": np.array([[0.1], [0.9], [0.4], [0.8]], np.float32)}

    def input_fn():
        return tf.data.Dataset.from_tensors((x, labels)).repeat(3)

    def model_fn(features, labels, mode):
        head = v2.MultiHead(
            [v2.BinaryClassHead(name="class"), v2.RegressionHead(name="value")], [1.0, 0.5]
        )
        weight = tf.get_variable("w", [1, 2], initializer=tf.ones_initializer())
        logits = tf.matmul(features["x"], weight)
        return head.create_estimator_spec(
            features,
            mode,
            {"class": logits[:, :1], "value": logits[:, 1:]},
            labels=labels,
            train_op_fn=models.descent,
            trainable_variables=[weight],
        )

    est = models.estimator(model_dir, model_fn)
    est.train(input_fn)
    record(est.evaluate(input_fn))
    record(next(est.predict(input_fn)))
    models.attempt(record, est.train, _data([0, 1, 1, 0]))
