"""A child of a fork leaves, and its parent goes on with the predictions that it had begun."""

import os
import subprocess
import sys

import pytest
from support import TESTS, python_path

SCRIPT = """
import os, sys
import numpy as np
import tensorflow.compat.v1 as tf
from tpu_estimator_compat.v1 import estimator

def model_fn(features, labels, mode):
    weight = tf.get_variable("w", [4, 1], initializer=tf.ones_initializer())
    return estimator.EstimatorSpec(mode, predictions={"value": features @ weight})

def input_fn():
    return tf.data.Dataset.from_tensors(np.ones([4, 4], "f4")).repeat()

tf.get_logger().setLevel("ERROR")
hooks = [tf.train.SessionRunHook()] if "hooks" in sys.argv else None
results = estimator.Estimator(model_fn, sys.argv[1]).predict(input_fn, hooks=hooks)
next(results)
child = os.fork()
if child == 0:
    ENDING
_, status = os.waitpid(child, 0)
print("child", status, "parent", next(results)["value"])
"""


@pytest.mark.parametrize("hooks", [[], ["hooks"]], ids=["alone", "hooks"])
@pytest.mark.parametrize("ending", ["results.close(); os._exit(0)", "del results; os._exit(0)"])
def test_a_child_closes_its_parents_generator(forks, tmp_path, ending, hooks):
    done = forks.run("-c", SCRIPT.replace("ENDING", ending), str(tmp_path), *hooks)
    assert done.stdout.split("\n")[0] == "child 0 parent [4.]", done.stderr


@pytest.mark.slow
def test_a_child_ends_python_with_an_open_generator(tmp_path):
    command = [sys.executable, "-c", SCRIPT.replace("ENDING", "sys.exit(0)"), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split("\n")[0] == "child 0 parent [4.]"
    assert "ignored" not in done.stderr
