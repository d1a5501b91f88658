import os
import shutil
import threading
import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.checkpoint.writing import CheckpointWrite
from tpu_estimator_compat.engine.hooks import saver_hook


def test_a_session_that_breaks_goes_on_from_the_last_save(tmp_path, monkeypatch):
    """The save may still be on its way to disk, and the run goes on as it was planned."""

    class Breaks(tf.train.SessionRunHook):
        def begin(self):
            self.step = tf.train.get_global_step()

        def before_run(self, run_context):
            return tf.train.SessionRunArgs(self.step)

        def after_run(self, run_context, run_values):
            seen.append(int(run_values.results))
            if len(seen) == 3:
                gone.set()
                raise tf.errors.AbortedError(None, None, "gone")

    def save_slowly(*args, **kwargs):
        if threading.current_thread().name == "checkpoint":
            gone.wait(10.0)
            time.sleep(0.1)
        return save(*args, **kwargs)

    save, seen, gone = tf.train.Saver.save, [], threading.Event()
    monkeypatch.setattr(tf.train.Saver, "save", save_slowly)
    estimator = make_estimator(tmp_path, save_checkpoints_steps=2)
    estimator.train(train_input_fn, hooks=[Breaks()], steps=5)
    assert seen == [0, 1, 2, 2, 3, 4]


class ReadEveryStep(tf.train.SessionRunHook):
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
    call = CheckpointWrite.__call__

    def recorded(self, values):
        names.append(threading.current_thread().name)
        return call(self, values)

    monkeypatch.setattr(CheckpointWrite, "__call__", recorded)
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
