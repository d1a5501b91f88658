"""`compare` with sessions: in the original's place, and as a third side."""

import pathlib

import pytest
from support.original import Original

from tpu_estimator_compat import __main__
from tpu_estimator_compat.tools.compare import environment
from tpu_estimator_compat.tools.compare.report import Report

pytestmark = pytest.mark.slow

TRAINING = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode, config):
    newer = not tf.__version__.startswith("2.15") and "tensorflow" in sys.argv
    steps = getattr(config, "runtime", "session") != "session" and "steps" in sys.argv
    loss = tf.reduce_mean(tf.matmul(features, tf.get_variable("w", [2, 1])) ** 2)
    optimizer = tf.train.GradientDescentOptimizer(0.2 if newer or steps else 0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(np.ones([4, 2], np.float32)).repeat()


config = tf.estimator.tpu.RunConfig()
use_tpu = "tpu" in sys.argv
tf.estimator.tpu.TPUEstimator(
    lambda features, labels, mode, params, config: model_fn(features, labels, mode, config),
    model_dir="users_model", config=config, use_tpu=use_tpu, train_batch_size=4
).train(lambda params: input_fn())
"""


@pytest.fixture
def compared(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("train.py").write_text(TRAINING)

    def of(*arguments: str, code: int) -> Report:
        options = ["--json", "--steps", "3", *arguments]
        assert __main__.main(["compare", *options]) == code
        return Report.from_json(capfd.readouterr().out)

    return of


@pytest.fixture
def no_original(monkeypatch):
    def refuse(*_: object, **__: object) -> str:
        raise environment.Unavailable("there is no such Python.")

    monkeypatch.setattr(environment, "find_or_make", refuse)


@pytest.mark.parametrize(("what", "code"), [("tensorflow", 0), ("steps", 1)])
def test_in_the_originals_place(compared, no_original, what, code):
    report = compared("train.py", what, code=code)
    assert report.old.name == "session"
    assert report.old.versions == report.new.versions
    assert "the original cannot run: there is no such Python." in report.instead


def test_sessions_have_no_tpu(compared, no_original):
    report = compared("train.py", "tpu", code=2)
    assert "have no use_tpu=True" in report.old.failure.message
    assert report.new.failure is None
    assert any("give the script use_tpu=False" in note for note in report.notes)


@pytest.mark.full
def test_a_script_that_chooses_another_runtime(compared):
    """The setting counts, as else both sides would be the same."""
    text = pathlib.Path("train.py").read_text()
    pathlib.Path("train.py").write_text(text.replace("RunConfig()", "RunConfig(runtime='jax')"))
    report = compared("--against", "session", "train.py", "steps", code=1)
    assert report.first_difference is not None


@pytest.mark.parity
@pytest.mark.parametrize("by", ["TensorFlow", "this package"])
def test_who_makes_a_difference(compared, original: Original, tmp_path, by):
    what = "tensorflow" if by == "TensorFlow" else "steps"
    options = ["--keep", str(tmp_path / "kept"), "--original-python", original.python]
    report = compared(*options, "train.py", what, code=1)
    assert len(list(tmp_path.glob("kept/session*"))) == 4
    assert (report.old.name, report.instead) == ("original", "")
    assert report.first_difference.by == by
    assert {report.loss.by, *(each.by for each in report.first_update)} == {by, ""}


@pytest.mark.full
@pytest.mark.parity
def test_a_new_script_makes_a_difference(compared, original: Original):
    text = pathlib.Path("train.py").read_text()
    pathlib.Path("moved.py").write_text(text.replace("else 0.1", "else 0.3"))
    options = ["--original-python", original.python, "--new-script", "moved.py"]
    report = compared(*options, "train.py", code=1)
    assert report.first_difference.by == "TensorFlow or script"


@pytest.mark.full
@pytest.mark.parity
def test_sessions_are_not_asked_without_a_difference(compared, original: Original, tmp_path):
    kept = str(tmp_path / "kept")
    compared("--keep", kept, "--original-python", original.python, "train.py", code=0)
    folders = sorted(path.name for path in pathlib.Path(kept).iterdir())
    assert folders == [
        *("new", "original", "original--again", "original--disturbed-1", "original--disturbed-2")
    ]
