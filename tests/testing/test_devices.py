"""The devices of replicas in a test's process, and what remains of them: nothing."""

import os

import numpy as np
import pytest
from support import TESTS

from tpu_estimator_compat import testing

SCRIPT = """
import sys
import jax
import numpy as np
import tensorflow as tf
import tpu_estimator_compat as tpu
from tpu_estimator_compat import testing
from tpu_estimator_compat.engine.topology import local

if sys.argv[1] == "v1":
    tf.compat.v1.disable_v2_behavior()

def cpus():
    assert not tf.config.list_logical_devices("GPU")
    assert tf.executing_eagerly() == (sys.argv[1] == "v2")
    return len(tf.config.list_logical_devices("CPU")), len(jax.devices()), replicas()

def replicas():
    return local.strategy().num_replicas_in_sync

def fail():
    raise KeyError(testing.with_replicas(3, cpus))

assert cpus() == (1, 1, 1)
before = jax.numpy.ones(3)
assert [testing.with_replicas(n, cpus) for n in (4, 1, 8, 4)] == [(n,) * 3 for n in (4, 1, 8, 4)]
assert testing.with_replicas(2, lambda x, y: [x, y, cpus()], 1, y=2) == [1, 2, (2, 2, 2)]
try:
    testing.with_replicas(5, fail)
except KeyError as error:
    assert error.args == ((3, 3, 3),)
if tf.executing_eagerly():
    tf.random.set_seed(7)
    drawn = [float(tf.random.uniform([]))]
    drawn += [float(testing.with_replicas(2, tf.random.uniform, [])) for _ in range(2)]
    assert drawn == drawn[:1] * 3, drawn
assert cpus() == (1, 1, 1)
assert (before + 1).sum() == 6

X = np.ones([8, 2], np.float32)

def model_fn(features, labels, mode, params=None):
    x = features @ tf.compat.v1.get_variable("w", [2, 1])
    train_op = tpu.CrossShardOptimizer(tf.compat.v1.train.AdamOptimizer(0.1)).minimize(
        tf.reduce_mean(x ** 2), tf.compat.v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=tf.reduce_mean(x ** 2), train_op=train_op)

def input_fn(params):
    return tf.data.Dataset.from_tensors(X).unbatch().repeat().batch(params["batch_size"], True)

estimator = tpu.TPUEstimator(model_fn, train_batch_size=8, eval_batch_size=8,
                             config=tpu.RunConfig(tf_random_seed=1))
for number in (1, 2, 4, 1):
    # The same estimator, on other devices each time.
    testing.with_replicas(number, estimator.train, input_fn, steps=1)
    loss = testing.with_replicas(number, estimator.evaluate, input_fn, steps=1)["loss"]
    one = estimator.evaluate(input_fn, steps=1)["loss"]
    assert abs(loss - one) < 1e-6 * abs(one), (loss, one)
result = testing.run(model_fn, X, replicas=4, runtime="jax")
assert result.replicas == 4 and "w" in result.moved
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("behavior", ["v1", "v2"])
def test_in_one_process(forks, behavior, tmp_path):
    done = forks.run(
        "-c", SCRIPT, behavior, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(TESTS.parent)}
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["done"]), done.stderr


@pytest.mark.parametrize("number", [0, -1, "4", None, 2.0, True])
def test_wrong_numbers(number):
    with pytest.raises((TypeError, ValueError), match="replicas must be"):
        testing.with_replicas(number, np.ones, 1)
