"""Trains a table of `sys.argv[1]` rows of 16; prints memory in MiB, before and at its highest."""

import json
import pathlib
import sys
import tempfile

import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

ROWS, DIMENSION, BATCH = int(sys.argv[1]), 16, 512


def model_fn(features, labels, mode, params):
    del params
    kernel = tf.get_variable("kernel", [DIMENSION, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(features["ids"], kernel)[:, 0] - labels))
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    del params
    return (
        tf.data.Dataset.range(1)
        .repeat()
        .map(
            lambda _: (
                {"ids": tf.random.uniform([BATCH], 0, ROWS, tf.int64)},
                tf.random.normal([BATCH]),
            )
        )
    )


def peak():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def train(rows):
    estimator = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(
            model_dir=tempfile.mkdtemp(dir="."),
            save_checkpoints_steps=50,
            tpu_config=tpu.TPUConfig(50),
        ),
        train_batch_size=BATCH,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            table_to_config_dict={"table": embedding.TableConfig(rows, DIMENSION, combiner=None)},
            feature_to_config_dict={"ids": embedding.FeatureConfig("table")},
            optimization_parameters=embedding.AdagradParameters(0.1),
        ),
    )
    estimator.train(input_fn, steps=150)


if __name__ == "__main__":
    large, ROWS = ROWS, 1000
    train(ROWS)  # what TensorFlow and Python take by themselves
    before, ROWS = peak(), large
    train(ROWS)
    print(json.dumps({"before": before, "peak": peak()}))
