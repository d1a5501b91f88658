import tensorflow.compat.v1 as tf
from scenarios import models


def _trained(model_dir, columns, data, units=1):
    """A model on the dense tensor of some columns, all weights ones at first."""

    def input_fn():
        return tf.data.Dataset.from_tensors((data, [1.0, 2.0])).repeat()

    def model_fn(features, labels, mode):
        dense = tf.feature_column.input_layer(features, columns)
        out = tf.layers.dense(dense, units, kernel_initializer=tf.ones_initializer())
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predictions={"dense": dense, "out": out})
        loss = tf.reduce_mean(tf.square(out[:, 0] - labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(input_fn, steps=2)
    predictions = estimator.predict(input_fn)
    found = [next(predictions) for _ in range(2)]
    predictions.close()
    return found


def vocabulary_columns(model_dir, record):
    with open("words.txt", "w") as file:
        file.write("a\nb\n")
    column = tf.feature_column.categorical_column_with_vocabulary_list("w", ["a", "b"])
    of_file = tf.feature_column.categorical_column_with_vocabulary_file("f", "words.txt")
    columns = [
        tf.feature_column.indicator_column(column),
        tf.feature_column.indicator_column(of_file),
    ]
    return _trained(model_dir, columns, {"w": ["a", "c"], "f": ["b", "a"]})


def hashed_and_crossed_columns(model_dir, record):
    hashed = tf.feature_column.categorical_column_with_hash_bucket("w", 3)
    crossed = tf.feature_column.crossed_column(["w", "v"], 4)
    columns = [
        tf.feature_column.indicator_column(hashed),
        tf.feature_column.indicator_column(crossed),
    ]
    return _trained(model_dir, columns, {"w": ["a", "b"], "v": ["c", "d"]})


def weighted_columns(model_dir, record):
    column = tf.feature_column.categorical_column_with_identity("i", 3)
    weighted = tf.feature_column.weighted_categorical_column(column, "weight")
    columns = [tf.feature_column.indicator_column(weighted)]
    return _trained(model_dir, columns, {"i": [[1], [2]], "weight": [[0.5], [2.0]]})


def linear_model(model_dir, record):
    def input_fn():
        return tf.data.Dataset.from_tensors(({"a": [1.0, 2.0], "i": [0, 1]}, [1.0, 2.0])).repeat()

    def model_fn(features, labels, mode):
        columns = [
            tf.feature_column.numeric_column("a"),
            tf.feature_column.categorical_column_with_identity("i", 2),
        ]
        out = tf.feature_column.linear_model(features, columns)
        loss = tf.reduce_mean(tf.square(out[:, 0] - labels))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=models.descent(loss))

    models.estimator(model_dir, model_fn).train(input_fn, steps=2)


def parsed_by_the_spec_of_columns(model_dir, record):
    columns = [tf.feature_column.numeric_column("a")]

    def example(value):
        feature = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
        return tf.train.Example(
            features=tf.train.Features(feature={"a": feature})
        ).SerializeToString()

    with tf.io.TFRecordWriter("examples.tfrecord") as writer:
        for value in (1.0, 2.0, 3.0):
            writer.write(example(value))
    spec = tf.feature_column.make_parse_example_spec(columns)

    def input_fn():
        dataset = tf.data.TFRecordDataset("examples.tfrecord").batch(2)
        return dataset.map(lambda records: tf.io.parse_example(records, spec))

    def model_fn(features, labels, mode):
        dense = tf.feature_column.input_layer(features, columns)
        return tf.estimator.EstimatorSpec(mode, predictions=dense)

    return list(models.estimator(model_dir, model_fn).predict(input_fn))
