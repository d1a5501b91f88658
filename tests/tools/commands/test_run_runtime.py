"""One script of TensorFlow 1, by each runtime that `--runtime` and the environment variable name.

Its variables are refs, as after `tf.disable_v2_behavior()`.
"""

import os
import pathlib
import re

import pytest
from support import python_path
from support.sides import comparing, observing

from tpu_estimator_compat.environment import RUNTIME_VARIABLE, RUNTIMES

ROOT = pathlib.Path(__file__).parents[3]
RUN = ("-m", "tpu_estimator_compat", "run")
SCRIPT = """
import sys
import tensorflow as tf


def model_fn(features, labels, mode):
    logits = tf.layers.dense(tf.layers.dense(features, 8, tf.nn.relu), 1)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    metrics = {"mean": tf.metrics.mean(logits)}
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)


def input_fn():
    x = tf.reshape(tf.range(32.0) / 32, [16, 2])
    return tf.data.Dataset.from_tensors((x, tf.reduce_sum(x, 1, keepdims=True))).repeat(20)


class Sessions(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
        assert tf.trainable_variables()[0].op.type == "VariableV2"
        print("runtime", "session" if type(session) is tf.Session else "tensorflow")


config = tf.estimator.RunConfig("model", tf_random_seed=1, save_checkpoints_steps=5)
estimator = tf.estimator.Estimator(model_fn, config=config)
estimator.train(input_fn, hooks=[Sessions()], steps=int(sys.argv[1]))
print(sorted(estimator.evaluate(input_fn, steps=2).items()))
print(next(estimator.predict(input_fn)), estimator.get_variable_names())
"""


@pytest.fixture
def observed(tmp_path, forks):
    """Runs the script in a folder; returns its runtime, and what it printed and saved there."""

    def of(folder: str, steps: int, *options: str, runtime: str | None = None):
        home = tmp_path / folder
        home.mkdir(exist_ok=True)
        (home / "script.py").write_text(SCRIPT)
        path = python_path.joined(ROOT)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        if runtime:
            environment[RUNTIME_VARIABLE] = runtime
        done = forks.run(*RUN, *options, "script.py", str(steps), cwd=home, env=environment)
        assert done.returncode == 0, done.stderr
        texts = observing.Texts(str(home))
        chosen, *printed = done.stdout.splitlines()
        return chosen.split()[-1], {
            "printed": printed,
            "checkpoints": observing.checkpoints(str(home), texts, 10**6),
        }

    return of


def test_the_option_chooses(observed):
    """Conformance compares all that the two do."""
    runtime, steps = observed("steps", 10, "--runtime", "tensorflow")
    assert runtime == "tensorflow"
    runtime, session = observed("session", 10, "--runtime", "session")
    assert runtime == "session"
    comparing.assert_none(comparing.differences(steps, session))


@pytest.mark.slow
@pytest.mark.parametrize("first", ["tensorflow", "session"])
def test_each_goes_on_where_the_other_was(observed, first):
    """By the environment variable."""
    [second] = {"tensorflow", "session"} - {first}
    _, straight = observed("straight", 10, runtime=first)
    assert observed("turns", 5, runtime=first)[0] == first
    runtime, turns = observed("turns", 5, runtime=second)
    assert runtime == second
    for what in ("printed", "checkpoints"):
        comparing.assert_none(comparing.differences(straight[what], turns[what]))


def test_the_help_names_every_runtime(forks):
    shown = forks.run(*RUN, "--help").stdout
    assert f"{{{','.join(RUNTIMES)}}}" in shown
    for runtime in RUNTIMES:
        assert len(re.findall(rf"\b{runtime}\b", shown)) > 1, runtime
