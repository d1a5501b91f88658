"""`testing.dry_run`: a script in a process of its own, and what a test gets of it."""

import subprocess
import sys
import time

import pytest

from tpu_estimator_compat import testing
from tpu_estimator_compat.testing import dry_running
from tpu_estimator_compat.tools.dry_run.report import Call, NotReached

SCRIPT = """
import sys
import tensorflow.compat.v1 as tf

assert sys.argv[1:] == ["--model_dir=" + sys.argv[1].partition("=")[2], "word"]


def model_fn(features, labels, mode, params):
    w = tf.get_variable("w", initializer=1.0)
    loss = tf.reduce_mean((w - features) ** 2)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    return tf.data.Dataset.from_tensors(2.0).repeat().batch(params["batch_size"], True)


config = tf.estimator.tpu.RunConfig(model_dir=sys.argv[1].partition("=")[2])
estimator = tf.estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)
estimator.train(input_fn, max_steps=1000)
"""


@pytest.mark.slow
def test_a_script_on_replicas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    found = testing.dry_run("script.py", "--model_dir=made", "word", replicas=4)
    found.check()
    [call] = found.calls
    assert (call.call, call.replicas, call.steps) == ("train", 4, 2)
    assert call.written == ("made/model.ckpt-0", "made/model.ckpt-2")
    assert found.not_reached == ()
    assert "exit status 0" in found.output
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.slow
def test_a_module_that_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainer.py").write_text("raise ValueError('of the script')\n")
    found = testing.dry_run("trainer", module=True)
    assert (found.status, found.calls) == (1, ())
    with pytest.raises(AssertionError, match="dry run of trainer failed") as failure:
        found.check()
    assert "ValueError: of the script" in str(failure.value)
    assert str(failure.value).count("reached no call of an estimator") == 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["import os\nos._exit(0)\n", "while True:\n    pass\n"])
def test_a_script_that_does_not_come_to_its_end(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(text)
    started = time.monotonic()
    found = testing.dry_run("script.py", time_limit=8)
    assert time.monotonic() - started < 60
    assert found.status is None
    with pytest.raises(AssertionError, match="did not end"):
        found.check()


def test_the_table_is_in_the_failure_where_the_process_was_killed():
    calls = (Call("train", "train.py", 3, steps=2),)
    missed = (NotReached("evaluate", "train.py", 4),)
    words = {"script": "train.py", "output": "its last words\n"}
    found = dry_running.DryRun(-9, calls, missed, **words)
    with pytest.raises(AssertionError) as failure:
        found.check()
    for words in ("its last words", "train.py:3", "Not reached: evaluate", "exit status -9"):
        assert words in str(failure.value)


def test_importing_it_imports_neither_tensorflow_nor_pytest():
    code = (
        "import sys; from tpu_estimator_compat import testing; testing.dry_run; "
        "assert not {'tensorflow', 'pytest', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
