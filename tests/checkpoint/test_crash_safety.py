"""Faults around checkpoints: background writes, full disks, vanished and damaged files."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import TESTS
from support.legacy_models import (
    examples,
    finite_input_fn,
    make_estimator,
    make_model_fn,
    train_input_fn,
)

from tpu_estimator_compat.hooks import saver_hook
from tpu_estimator_compat.program import saved_files
from tpu_estimator_compat.program.session import HostFunction


class ReadEveryStep(tf.train.SessionRunHook):
    """Keeps the model's variables as they were after every step."""

    def begin(self):
        self.seen = {}
        self._variables = tf.global_variables()

    def after_run(self, run_context, run_values):
        values = run_context.session.run({v.op.name: v for v in self._variables})
        self.seen[int(values["global_step"])] = values


@pytest.fixture
def writers(monkeypatch):
    """Names of the threads that wrote checkpoints."""
    names = []
    call = HostFunction.__call__

    def recorded(self, values):
        if self._filename is not None:
            names.append(threading.current_thread().name)
        return call(self, values)

    monkeypatch.setattr(HostFunction, "__call__", recorded)
    return names


def check_against(model_dir, seen, steps):
    for step in steps:
        reader = tf.train.load_checkpoint(f"{model_dir}/model.ckpt-{step}")
        for name, value in seen[step].items():
            np.testing.assert_array_equal(reader.get_tensor(name), value, err_msg=f"{step} {name}")


def embedding(loss, params):
    """Adam, after a lookup of a few rows with momentum: updates of both kinds, dense and sparse."""
    table = tf.get_variable("table", [50, 4])
    rows = tf.nn.embedding_lookup(table, [1, 3])
    step = tf.train.get_global_step()
    first = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(rows**2), var_list=[table])
    with tf.control_dependencies([first]):
        return tf.train.AdamOptimizer(0.1).minimize(loss, step)


@pytest.mark.parametrize(("train_op", "jit"), [(None, False), (None, True), (embedding, False)])
def test_background_saves_hold_the_step_that_they_name(
    tmp_path, writers, monkeypatch, train_op, jit
):
    # The writer waits until training is two steps ahead: what it writes must not move.
    ahead = threading.Semaphore(0)
    read = ReadEveryStep()
    write = saver_hook.SaveFunctions.write

    class Ahead(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            ahead.release()

    def late(self, filename, values):
        for _ in range(2):
            ahead.acquire(timeout=10)
        return write(self, filename, values)

    monkeypatch.setattr(saver_hook.SaveFunctions, "write", late)
    estimator = make_estimator(
        tmp_path, make_model_fn(train_op), save_checkpoints_steps=4, jit_compile=jit
    )
    estimator.train(train_input_fn, hooks=[read, Ahead()], steps=14)
    check_against(tmp_path, read.seen, (4, 8, 12, 14))
    assert writers == ["MainThread", "checkpoint", "checkpoint", "checkpoint", "MainThread"]


@pytest.mark.parametrize("replicas", [1, 2])
def test_background_saves_with_tpu_semantics(tmp_path, writers, strategy, replicas):
    read = ReadEveryStep()
    estimator = make_estimator(
        tmp_path,
        use_tpu=True,
        loop=4,
        save_checkpoints_steps=4,
        train_distribute=strategy(replicas),
    )
    estimator.train(train_input_fn, hooks=[read], steps=12)
    check_against(tmp_path, read.seen, (4, 8, 12))
    assert writers.count("checkpoint") >= 2


def test_listeners_are_told_of_files_that_are_there(tmp_path, writers):
    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            path = tf.train.latest_checkpoint(str(tmp_path))
            assert path.endswith(f"-{global_step_value}")
            assert tf.train.load_variable(path, "global_step") == global_step_value

    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    estimator.train(train_input_fn, steps=6, saving_listeners=[Listener()])
    assert set(writers) == {"MainThread"}


def test_what_does_not_fit_in_memory_twice_is_written_at_once(tmp_path, writers, monkeypatch):
    monkeypatch.setattr(saver_hook, "available_memory", lambda: 100)
    make_estimator(tmp_path, save_checkpoints_steps=2).train(train_input_fn, steps=6)
    assert set(writers) == {"MainThread"}


def test_what_was_restored_is_not_written_again(tmp_path):
    make_estimator(tmp_path).train(train_input_fn, steps=3)
    files = [tmp_path / f"model.ckpt-3.{s}" for s in ("index", "data-00000-of-00001")]
    before = [f.stat().st_ino for f in files]
    make_estimator(tmp_path).train(train_input_fn, steps=3)
    assert [f.stat().st_ino for f in files] == before


def test_leftovers_of_killed_saves_are_swept(tmp_path):
    leftover = tmp_path / ".model.ckpt-7.unfinished"
    leftover.mkdir(parents=True)
    (leftover / "model.ckpt-7.data-00000-of-00001").write_bytes(b"x" * 100)
    make_estimator(tmp_path).train(train_input_fn, steps=3)
    assert [n for n in os.listdir(tmp_path) if n.startswith(".")] == []


def test_files_move_only_when_all_are_complete(tmp_path):
    def fail():
        with saved_files.appearing_at_once(f"{tmp_path}/a") as prefix:
            pathlib.Path(f"{prefix}.index").write_text("half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert os.listdir(tmp_path) == []
    with saved_files.appearing_at_once(f"{tmp_path}/a") as prefix:
        pathlib.Path(f"{prefix}.index").write_text("whole")
        assert not (tmp_path / "a.index").exists()
    assert (tmp_path / "a.index").read_text() == "whole"


def test_a_write_that_fails_ends_training_with_its_error(tmp_path, monkeypatch):
    def fail(self, filename, values):
        raise tf.errors.ResourceExhaustedError(None, None, f"No space left for {filename}")

    monkeypatch.setattr(saver_hook.SaveFunctions, "write", fail)
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"No space left.*model\.ckpt-2"):
        estimator.train(train_input_fn, steps=10)
    assert estimator.latest_checkpoint().endswith("model.ckpt-0")


def test_a_write_is_finished_where_training_fails(tmp_path):
    class Fail(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf.train.get_global_step()) >= 5:
                raise KeyError("a mistake")

    estimator = make_estimator(tmp_path, save_checkpoints_steps=5)
    with pytest.raises(KeyError):
        estimator.train(train_input_fn, hooks=[Fail()], steps=10)
    assert estimator.latest_checkpoint().endswith("model.ckpt-5")
    assert estimator.get_variable_value("global_step") == 5


def test_a_model_dir_that_vanished(tmp_path):
    model_dir = tmp_path / "model"

    class Remove(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            shutil.rmtree(model_dir, ignore_errors=True)

    estimator = make_estimator(model_dir, save_checkpoints_steps=5)
    with pytest.raises(ValueError, match=r"Parent directory of .*model\.ckpt doesn't exist"):
        estimator.train(train_input_fn, hooks=[Remove()], steps=20)


def test_a_model_dir_that_was_removed_between_two_calls(tmp_path):
    model_dir = tmp_path / "model"
    make_estimator(model_dir).train(train_input_fn, steps=2)
    shutil.rmtree(model_dir)
    estimator = make_estimator(model_dir)
    estimator.train(train_input_fn, steps=3)
    assert estimator.get_variable_value("global_step") == 3


def damage(model_dir, step, kind):
    data = model_dir / f"model.ckpt-{step}.data-00000-of-00001"
    if kind == "cut":
        data.write_bytes(data.read_bytes()[:20])
    elif kind == "flipped":
        data.write_bytes(bytes(b ^ 255 for b in data.read_bytes()))
    elif kind == "no data":
        data.unlink()
    else:
        (model_dir / f"model.ckpt-{step}.index").unlink()


@pytest.mark.parametrize("kind", ["cut", "flipped", "no data", "no index"])
def test_damaged_checkpoints_fall_back_to_the_one_before(tmp_path, caplog, kind):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, kind)
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 4
    assert len(list(estimator.predict(finite_input_fn(20)))) == 20
    if kind != "no index":
        assert "model.ckpt-8 cannot be read" in caplog.text
        assert "Falling back to checkpoint" in caplog.text
    estimator.train(train_input_fn, steps=2)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")
    assert estimator.evaluate(train_input_fn, steps=1)["global_step"] == 6


def test_a_checkpoint_whose_global_step_is_cut_off_is_passed_over(tmp_path):
    def model_fn(features, labels, mode, params):
        tf.get_variable("a_long_one", [1000])  # before the step, by name
        return make_model_fn()(features, labels, mode, params)

    estimator = make_estimator(tmp_path, model_fn, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, "cut")
    estimator.train(train_input_fn, steps=2)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")


@pytest.mark.parametrize("kind", ["cut", "flipped", "no data", "no index"])
def test_under_keras_damaged_checkpoints_fall_back_too(tmp_path, caplog, kind):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, kind)
    x, y = examples(16)
    expected = [p["class"] for p in estimator.predict(finite_input_fn(16))]  # from step 4
    model = estimator.keras_model(train_input_fn)
    np.testing.assert_array_equal(model.predict(x, verbose=0)["class"], expected)
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    assert estimator.latest_checkpoint().endswith("model.ckpt-6")
    if kind != "no index":
        assert "model.ckpt-8 cannot be read" in caplog.text
        assert "Falling back to checkpoint" in caplog.text


@pytest.mark.parametrize("kind", ["cut", "flipped", "no data", "no index"])
def test_a_live_model_takes_over_no_damaged_checkpoint(tmp_path, caplog, kind):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    model = estimator.keras_model(train_input_fn)
    x, y = examples(16)
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    own = model.get_weights()
    estimator.train(train_input_fn, max_steps=6)
    damage(tmp_path, 6, kind)
    model.evaluate(x, y, batch_size=16, verbose=0)
    for found, expected in zip(model.get_weights(), own, strict=True):
        np.testing.assert_array_equal(found, expected)
    estimator.train(train_input_fn, max_steps=10)
    model.evaluate(x, y, batch_size=16, verbose=0)
    assert int(model_step(model)) == 10


def model_step(model):
    return next(v.numpy() for v in model.variables if v.path == "global_step")


def test_a_checkpoint_that_the_caller_named_is_no_other(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    damage(tmp_path, 8, "cut")
    path = str(tmp_path / "model.ckpt-8")
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-8"):
        estimator.evaluate(train_input_fn, steps=1, checkpoint_path=path)
    with pytest.raises(tf.errors.DataLossError, match=r"Could not read.*model\.ckpt-8"):
        list(estimator.predict(finite_input_fn(20), checkpoint_path=path))


def test_a_checkpoint_removed_while_it_is_read(tmp_path):
    estimator = make_estimator(tmp_path, save_checkpoints_steps=4)
    estimator.train(train_input_fn, steps=8)
    build = make_model_fn()

    def removing(features, labels, mode, params):
        for file in tmp_path.glob("model.ckpt-8.*"):
            file.unlink()
        return build(features, labels, mode, params)

    other = make_estimator(tmp_path, removing)
    path = str(tmp_path / "model.ckpt-8")
    with pytest.raises(ValueError, match=r"not a valid checkpoint.*\n.*was removed while it"):
        other.evaluate(train_input_fn, steps=1, checkpoint_path=path)
    estimator.train(train_input_fn, steps=4)  # 8 again, from 4
    assert other.evaluate(train_input_fn, steps=1)["global_step"] == 4


def test_a_checkpoint_that_does_not_fit_the_model_is_no_reason_to_fall_back(tmp_path):
    make_estimator(tmp_path, save_checkpoints_steps=4).train(train_input_fn, steps=8)

    def more(features, labels, mode, params):
        spec = make_model_fn()(features, labels, mode, params)
        tf.get_variable("extra", [])
        return spec

    with pytest.raises(tf.errors.NotFoundError, match="Variable 'extra' is not in the checkpoint"):
        make_estimator(tmp_path, more).train(train_input_fn, steps=1)


FULL_DISK = f"""
import resource, signal, sys, time
sys.path[:0] = [{str(TESTS)!r}]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import tensorflow.compat.v1 as tf
from support.legacy_models import *
def big(features, labels, mode, params):
    spec = make_model_fn()(features, labels, mode, params)
    tf.get_variable("big", [1000, 1000], initializer=tf.zeros_initializer())
    return spec
class Fill(tf.train.SessionRunHook):
    def after_run(self, context, values):
        if context.session.run(tf.train.get_global_step()) == 6:
            while not tf.train.latest_checkpoint(sys.argv[1]).endswith("-4"):
                time.sleep(0.01)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
make_estimator(sys.argv[1], big, save_checkpoints_steps=4).train(
    train_input_fn, hooks=[Fill()], steps=20)
"""


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_the_last_good_checkpoint(tmp_path):
    """The limit on file sizes stands for the disk: a write fails half-way."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stderr[-2000:]
    assert "Could not write a checkpoint; those written before are intact" in done.stderr
    assert [n for n in os.listdir(tmp_path) if n.startswith(".")] == []
    estimator = make_estimator(tmp_path)
    assert estimator.latest_checkpoint().endswith("model.ckpt-4")
    assert int(estimator.get_variable_value("global_step")) == 4
    assert estimator.get_variable_value("big").shape == (1000, 1000)
