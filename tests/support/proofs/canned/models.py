"""What trains a canned model: inputs, a configuration, and how it shows."""

import numpy as np
import tensorflow as tf2

from tpu_estimator_compat.estimator import RunConfig

ROOT = "tensorflow_estimator.python.estimator"
X = np.array([1.0, 2.0], np.float32)
COLUMN = tf2.feature_column.numeric_column("x")


def deep(name):
    return f"{ROOT}.canned.{name}"


def input_fn():
    return tf2.data.Dataset.from_tensors(({"x": X}, np.array([[1.0], [0.0]], np.float32))).repeat()


def trained(estimator):
    """Its training lowers the loss."""
    before = estimator.evaluate(input_fn, steps=1)["loss"]
    estimator.train(input_fn, steps=5)
    assert estimator.evaluate(input_fn, steps=1)["loss"] < before


def config(folder):
    return RunConfig(str(folder), tf_random_seed=1)
