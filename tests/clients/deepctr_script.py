"""Clicks on advertisements, by DeepCTR's estimators: `deepctr_script.py MODEL_DIR`."""

import json
import sys

import numpy as np
import tensorflow as tf
from deepctr.estimator import DCNEstimator, DeepFMEstimator, xDeepFMEstimator
from deepctr.estimator.inputs import input_fn_tfrecord

ROWS, SITES, CATEGORIES = 256, 20, 7
SPARSE = {"site": SITES, "category": CATEGORIES}
MODELS = {"deepfm": DeepFMEstimator, "xdeepfm": xDeepFMEstimator, "dcn": DCNEstimator}


def write(path):
    """TFRecords, as DeepCTR's example of the Criteo data has them."""
    rng = np.random.RandomState(0)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(ROWS):
            row = {name: rng.randint(size) for name, size in SPARSE.items()}
            price = rng.rand()
            click = float(row["site"] % 3 == 0) or float(price > 0.8)
            features = {name: int64(value) for name, value in row.items()}
            features |= {"price": real(price), "label": real(click)}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def int64(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def real(value):
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def input_fn(path, epochs):
    kinds = dict.fromkeys(SPARSE, tf.int64) | dict.fromkeys(("price", "label"), tf.float32)
    features = {name: tf.io.FixedLenFeature((), kind) for name, kind in kinds.items()}
    return input_fn_tfrecord(
        path, features, "label", batch_size=32, num_epochs=epochs, shuffle_factor=0
    )


def columns():
    linear, deep = [], []
    for name, size in SPARSE.items():
        ids = tf.feature_column.categorical_column_with_identity(name, size)
        table = tf.compat.v1.initializers.random_normal(stddev=0.1, seed=1)
        linear.append(ids)
        deep.append(tf.feature_column.embedding_column(ids, 4, initializer=table))
    price = tf.feature_column.numeric_column("price")
    return [*linear, price], [*deep, price]


folder = sys.argv[1]
path = f"{folder}.tfrecords"
write(path)
found = {}
for name, make in MODELS.items():
    config = tf.estimator.RunConfig(f"{folder}/{name}", tf_random_seed=1)
    estimator = make(*columns(), dnn_hidden_units=(16, 8), task="binary", config=config)
    estimator.train(input_fn(path, epochs=4))
    results = estimator.evaluate(input_fn(path, 1))
    clicks = [p["pred"].item() for p in estimator.predict(input_fn(path, 1))]
    found[name] = {key: float(value) for key, value in results.items()}
    found[name] |= {"clicks": clicks, "names": estimator.get_variable_names()}
print("FOUND", json.dumps(found))
