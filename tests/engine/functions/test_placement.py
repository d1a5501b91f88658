"""Where replicas are."""

import re

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tpu_estimator_compat.engine.functions import placement


def test_a_common_device(strategy):
    assert placement.common_device(tf.distribute.get_strategy()) is None
    assert placement.common_device(strategy(1)) is None
    assert placement.common_device(strategy(2)).endswith("CPU:0")
    assert placement.common_device(tf.distribute.MultiWorkerMirroredStrategy()) is None


def test_gpus_that_are_not_there_share_the_cpu(monkeypatch):
    # TensorFlow's context has it only where it was started eagerly, not in a graph of another test.
    monkeypatch.setattr(context.context(), "soft_device_placement", True)
    named = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    assert placement.common_device(named).endswith("CPU:0")


def test_devices_by_parts_of_their_names():
    there = ["/cpu:0", "/device:CPU:0", "/job:localhost", "/replica:0/device:CPU:*", ""]
    placement.settle([(f"x{i}", device) for i, device in enumerate(there)], soft=False)


@pytest.mark.parametrize("device", ["/gpu:0", "/device:GPU:1", "/cpu:99", "/job:ps/task:0"])
def test_a_missing_device_is_refused_without_soft_placement(device):
    said = rf"operation b: {{{{node b}}}} was explicitly assigned to {device} but available devices"
    with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(said)):
        placement.settle([("a", ""), ("b", device)], soft=False)


SCRIPT = """
import sys
import tpu_estimator_compat.v1 as tf

tf.disable_v2_behavior()


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.square(tf.layers.dense(features, 1) - labels))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors((tf.ones([4, 2]), tf.ones([4, 1]))).repeat(8)


strategy = eval(sys.argv[1])
session_config = tf.ConfigProto(allow_soft_placement=True)
config = tf.estimator.RunConfig(
    sys.argv[2],
    train_distribute=strategy,
    eval_distribute=strategy,
    session_config=session_config,
)
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, steps=3)
print(estimator.get_variable_value("global_step"))
print(estimator.evaluate(input_fn, steps=1)["global_step"])
"""


@pytest.mark.parametrize(
    "strategy",
    [
        "tf.distribute.OneDeviceStrategy('device:GPU:0')",
        "tf.distribute.MirroredStrategy(['/gpu:0'])",
        "tf.distribute.MirroredStrategy(['/gpu:0', '/gpu:1'])",
    ],
)
def test_a_script_of_tensorflow_1_trains_on_absent_gpus(forks, tmp_path, strategy):
    done = forks.run("-c", SCRIPT, strategy, str(tmp_path))
    assert done.stdout.split() == ["3", "3"], done.stderr[-2000:]
