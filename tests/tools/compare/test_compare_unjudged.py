"""Runs that cannot be compared: each is a report that says why, and what to do."""

import pathlib

import pytest
from support.original import Original

from tpu_estimator_compat.tools.compare import comparing, runs
from tpu_estimator_compat.tools.compare.report import Report, Verdict

pytestmark = [pytest.mark.slow, pytest.mark.parity]

TRAINING = """
import os, sys, time
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def model_fn(features, labels, mode):
    loss = tf.reduce_mean(tf.matmul(features, tf.get_variable("w", [2, 1])) ** 2)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(numbers()).repeat()


def numbers():
    return np.ones([4, 2], np.float32)


estimator = tf.estimator.Estimator(model_fn, model_dir="users_model")
"""


@pytest.fixture
def compared(original: Original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def of(text: str, time_limit: float = 300.0) -> Report:
        pathlib.Path("train.py").write_text(TRAINING + text)
        script = runs.Script("train.py")
        runner = runs.Runner(script, tmp_path / "runs", 3, time_limit)
        report = comparing.with_original(runner, original.python)
        assert report.verdict is Verdict.UNKNOWN
        assert report.exit_code == 2
        assert not pathlib.Path("users_model").exists()
        return report

    return of


def test_one_side_fails(compared):
    report = compared(
        "estimator.train(input_fn)\n"
        "if tf.__version__.startswith('2.15'): raise OSError('no such disk')\n"
    )
    assert report.old.failure.message == "OSError: no such disk"
    assert "raise OSError" in report.old.failure.traceback
    assert report.new.failure is None
    assert report.summary.startswith("could not be judged: the original run failed: OSError")


def test_nothing_to_compare(compared):
    report = compared("print('nothing')\n")
    assert "there is nothing to compare" in report.summary
    assert "must train, evaluate or predict" in report.unknown


def test_a_script_that_is_not_deterministic(compared):
    report = compared(
        "def numbers():\n"
        "    return np.frombuffer(os.urandom(8), np.uint8).astype(np.float32).reshape(4, 2)\n"
        "estimator.train(input_fn)\n"
    )
    assert "two runs of original are not the same" in report.unknown
    assert any("tf_random_seed" in note for note in report.notes)


def test_time_runs_out(compared):
    report = compared("time.sleep(600)\n", time_limit=8.0)
    assert report.old.failure.kind == "time"
    assert "--time-limit" in report.old.failure.message


def test_what_measures_rounding_fails(compared):
    report = compared(
        "estimator.train(input_fn)\n"
        "if 'disturbed' in estimator.model_dir: raise ValueError('other values')\n"
    )
    assert "failed when disturbed: ValueError: other values" in report.unknown
