"""Several processes at one model_dir: a second training is told, and readers find what is there."""

import contextlib
import fcntl
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import examples, make_estimator, train_input_fn

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.engine.checkpoint.state import latest
from tpu_estimator_compat.engine.files import user_files

from .models import servable_model_fn, serving_input_receiver

HOLD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def other_training(model_dir):
    """Another process that does to the folder what a training does; yields its number."""
    model_dir.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HOLD, str(model_dir)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.stdin.close()


def test_a_second_training_is_told_of_the_first(tmp_path, caplog):
    with other_training(tmp_path) as number:
        make_estimator(tmp_path).train(train_input_fn, steps=1)
    assert f"Another training writes to model_dir {tmp_path}: process {number} (" in caplog.text
    assert "LOCK_EX" in caplog.text
    caplog.clear()
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    assert "Another training" not in caplog.text


def test_the_first_training_in_a_folder_that_it_makes_holds_it(tmp_path):
    class Look(tf.train.SessionRunHook):
        def begin(self):
            descriptor = os.open(tmp_path / "new", os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(descriptor)

    make_estimator(tmp_path / "new").train(train_input_fn, steps=1, hooks=[Look()])


def test_fit_is_told_too(tmp_path, caplog):
    model = make_estimator(tmp_path).keras_model(train_input_fn)
    x, y = examples(16)
    with other_training(tmp_path):
        model.fit(x, y, batch_size=16, epochs=1, verbose=0)
    assert "Another training" in caplog.text


def test_a_training_within_a_training_is_told(tmp_path, caplog):
    class Nested(tf.train.SessionRunHook):
        def end(self, session):
            del session
            with tf.Graph().as_default():
                make_estimator(tmp_path).train(train_input_fn, steps=1)

    make_estimator(tmp_path).train(train_input_fn, steps=1, hooks=[Nested()])
    assert f"model_dir {tmp_path}: this process itself" in caplog.text


def leave_unfinished(model_dir):
    """Makes what a killed training leaves."""
    names = [
        f"checkpoint.tmp{'0f' * 16}",
        f"checkpoint.tmp{'0f' * 16}.tmp{'a1' * 16}",
        f"graph.pbtxt.tmp{'0f' * 16}",
        f"model.ckpt-3.meta.tmp{'0f' * 16}",
        ".model.ckpt-4.unfinished-0123abcd",
        ".model.ckpt-4.input-00000-of-00001.unfinished-0123abcd",
    ]
    model_dir.mkdir(exist_ok=True)
    for name in names:
        if name.startswith("."):
            (model_dir / name).mkdir()
            (model_dir / name / f"{name[1:].partition('.unf')[0]}.index").write_text("half")
        else:
            (model_dir / name).write_text("half")
    return set(names)


def test_what_killed_trainings_left_is_swept(tmp_path):
    left = leave_unfinished(tmp_path)
    names = {"checkpoint.tmp", "checkpoint.tmpfs", "notes.meta.tmp0", f"mine.tmp{'0f' * 16}"}
    for name in names:
        (tmp_path / name).write_text("kept")
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    found = set(os.listdir(tmp_path))
    assert not found & left
    assert names <= found


def test_what_another_training_is_writing_is_not_swept(tmp_path):
    left = leave_unfinished(tmp_path)
    with other_training(tmp_path):
        make_estimator(tmp_path).train(train_input_fn, steps=1)
    assert left <= set(os.listdir(tmp_path))


def test_readers_look_again_where_a_checkpoint_is_gone(tmp_path, monkeypatch):
    """It was removed between the file `checkpoint` and its own files."""
    (tmp_path / "model.ckpt-2.index").write_text("")
    answers = [["model.ckpt-1"], ["model.ckpt-2"]]
    monkeypatch.setattr(state, "named", lambda *_: [str(tmp_path / n) for n in answers.pop(0)])
    assert latest(str(tmp_path)) == str(tmp_path / "model.ckpt-2")


def test_a_reader_beside_a_training_that_keeps_one_checkpoint(tmp_path):
    """Every read finds a step, and all of it."""
    make_estimator(tmp_path).train(train_input_fn, steps=1)
    reader, seen, over = make_estimator(tmp_path), [], threading.Event()

    def read():
        while not over.is_set():
            seen.append((reader.get_variable_value("global_step"), reader.latest_checkpoint()))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        estimator = make_estimator(
            tmp_path, loop=1, save_checkpoints_steps=1, keep_checkpoint_max=1
        )
        estimator.train(train_input_fn, steps=20)
    finally:
        over.set()
        thread.join()
    steps = [int(step) for step, _ in seen]
    np.testing.assert_array_equal(steps, sorted(steps))
    assert all(path for _, path in seen)


def test_an_export_takes_the_newer_of_two_checkpoints(tmp_path, monkeypatch):
    estimator = make_estimator(tmp_path, servable_model_fn, save_checkpoints_steps=2)
    estimator.train(train_input_fn, steps=4)
    checkpoints = [f"{tmp_path}/model.ckpt-{step}" for step in (4, 2)]
    for path in tmp_path.glob("model.ckpt-2.*"):
        path.unlink()
    monkeypatch.setattr(
        estimator,
        "latest_checkpoint",
        lambda: checkpoints.pop() if checkpoints[1:] else checkpoints[0],
    )
    path = estimator.export_saved_model(str(tmp_path / "exports"), serving_input_receiver)
    assert os.listdir(tmp_path / "exports") == [os.path.basename(path.decode())]


def test_a_variable_that_is_missing_is_no_reason_to_look_again(tmp_path):
    estimator = make_estimator(tmp_path)
    estimator.train(train_input_fn, steps=1)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere"):
        estimator.get_variable_value("nowhere")


def remove_checkpoints(folder):
    for path in folder.glob("model.ckpt-*"):
        path.unlink()


def warm_started(folder, first, hooks=()):
    estimator = make_estimator(folder, warm_start_from=str(first))
    estimator.train(train_input_fn, steps=1, hooks=[*hooks])
    return {n: estimator.get_variable_value(n) for n in estimator.get_variable_names()}


@pytest.fixture
def first(tmp_path):
    make_estimator(tmp_path / "first").train(train_input_fn, steps=2)
    return tmp_path / "first"


def test_a_warm_start_keeps_a_checkpoint_that_is_removed_before_it_is_read(tmp_path, first):
    class Remove(tf.train.SessionRunHook):
        def begin(self):
            remove_checkpoints(first)

    whole = warm_started(tmp_path / "whole", first)
    descriptors = len(os.listdir("/proc/self/fd"))
    found = warm_started(tmp_path / "found", first, [Remove()])
    assert not list(first.glob("model.ckpt-*"))
    np.testing.assert_equal(found, whole)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_a_warm_start_takes_the_checkpoint_that_came_meanwhile(tmp_path, first, monkeypatch):
    held, asked = user_files.held, []

    def late(checkpoint, owner):
        asked.append(os.path.basename(checkpoint))
        if len(asked) == 1:
            make_estimator(first, keep_checkpoint_max=1).train(train_input_fn, steps=3)
        return held(checkpoint, owner)

    monkeypatch.setattr(user_files, "held", late)
    found = warm_started(tmp_path / "found", first)
    assert asked == ["model.ckpt-2", "model.ckpt-5"]
    np.testing.assert_equal(found, warm_started(tmp_path / "whole", first))


def test_a_warm_start_from_a_folder_without_its_checkpoint_is_refused(tmp_path, first):
    remove_checkpoints(first)
    with pytest.raises(tf.errors.NotFoundError, match="there is no checkpoint at"):
        warm_started(tmp_path / "found", first)
