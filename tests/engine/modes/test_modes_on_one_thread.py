"""Where TensorFlow has one thread for ops, as on one processor, no call waits for another."""

import os

import pytest

SCRIPT = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
import tpu_estimator_compat as tpu
from tpu_estimator_compat import layers

def model_fn(features, labels, mode, params):
    outputs = layers.dense(features["x"], 1)
    if mode == "infer":
        return tpu.TPUEstimatorSpec(mode, predictions={"y": outputs})
    loss = tf.reduce_mean((outputs - labels) ** 2)
    if mode == "eval":
        metrics = (lambda y: {"mean": tf.metrics.mean(y)}, [outputs])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = tpu.CrossShardOptimizer(tf.train.AdamOptimizer())
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(params, repeat=False):
    x = np.arange(192, dtype=np.float32).reshape(64, 3)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :1]))
    data = data.map(lambda x, y: (x, y + 1), num_parallel_calls=2)
    data = data.repeat() if repeat else data
    return data.batch(params["batch_size"], drop_remainder=True).prefetch(2)

estimator = tpu.TPUEstimator(
    model_fn, use_tpu=sys.argv[1] == "tpu", train_batch_size=8, eval_batch_size=8,
    predict_batch_size=8, config=tpu.RunConfig(tpu_config=tpu.TPUConfig(iterations_per_loop=50)))
estimator.train(lambda params: input_fn(params, repeat=True), steps=200)
print(estimator.evaluate(input_fn, steps=8)["global_step"], end=" ")
print(len(list(estimator.predict(input_fn))))
"""


@pytest.mark.parametrize("rules", ["plain", "tpu"])
def test_every_mode_ends(rules, tmp_path, forks):
    """A process of its own: TensorFlow reads the variable when its runtime starts."""
    environment = {**os.environ, "TF_NUM_INTEROP_THREADS": "1"}
    done = forks.run("-c", SCRIPT, rules, env=environment, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "200 64\n"
