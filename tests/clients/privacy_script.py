"""Trains with differential privacy: `privacy_script.py MODEL_DIR`."""

import distutils.version  # noqa: F401 - the package takes it to be imported
import json
import sys

import numpy as np
import tensorflow as tf

sys.skip_tf_privacy_import = True  # its own switch: it has parts that import what never was

from tensorflow_privacy.privacy.estimators.v1 import dnn  # noqa: E402
from tensorflow_privacy.privacy.optimizers import (  # noqa: E402
    dp_optimizer,
    dp_optimizer_vectorized,
)

FOLDER = sys.argv[1]
tf1 = tf.compat.v1
X = np.random.RandomState(0).randn(64, 4).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 3.0, 0.5], np.float32) > 0).astype(np.int32)
PRIVACY = {"l2_norm_clip": 1.0, "noise_multiplier": 0.1, "num_microbatches": 16}
OPTIMIZERS = {
    "looped": dp_optimizer.DPGradientDescentGaussianOptimizer,
    "vectorized": dp_optimizer_vectorized.VectorizedDPAdam,
}


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(16, drop_remainder=True)


def model_fn(features, labels, mode, params):
    """As in the package's tutorials: a loss for each example."""
    hidden = tf1.layers.dense(
        features["x"], 8, tf.nn.relu, kernel_initializer=tf1.initializers.random_normal(seed=1)
    )
    logits = tf1.layers.dense(hidden, 2, kernel_initializer=tf1.initializers.random_normal(seed=2))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = tf.reduce_mean(losses)
    if mode == tf.estimator.ModeKeys.EVAL:
        accuracy = tf1.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = OPTIMIZERS[params["optimizer"]](**PRIVACY, learning_rate=0.1)
    train_op = optimizer.minimize(losses, global_step=tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def custom(name, config):
    return tf.estimator.Estimator(model_fn, config=config, params={"optimizer": name})


def canned(name, config):
    return dnn.DNNClassifier(
        [8],
        [tf.feature_column.numeric_column("x", shape=4)],
        optimizer=dp_optimizer.DPAdamGaussianOptimizer(**PRIVACY, learning_rate=0.05),
        loss_reduction=tf1.losses.Reduction.NONE,
        config=config,
    )


found = {}
for name, make in {"looped": custom, "vectorized": custom, "canned": canned}.items():
    estimator = make(name, tf.estimator.RunConfig(f"{FOLDER}/{name}", tf_random_seed=1))
    estimator.train(input_fn, max_steps=20)
    results = estimator.evaluate(input_fn, steps=4)
    found[name] = {key: float(value) for key, value in results.items()}
    names = found[name]["names"] = estimator.get_variable_names()
    values = [estimator.get_variable_value(variable).ravel() for variable in names]
    found[name]["values"] = np.concatenate(values).tolist()
print("FOUND", json.dumps(found))
