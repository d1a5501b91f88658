"""A signal ends training, wherever it is blocked, and what a script registered runs."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support import TESTS, python_path

SCRIPT = """
import atexit, multiprocessing, os, sys, tempfile, threading, time
import tensorflow.compat.v1 as tf
from tpu_estimator_compat.v1 import estimator

def told(word):
    print(word, flush=True)

atexit.register(told, "exit")
folder = tempfile.TemporaryDirectory()
told(folder.name)

def waiting(value):
    told("blocked")
    time.sleep(1e6)
    return value

def computing():
    while True:
        pass

def model_fn(features, labels, mode):
    weight = tf.get_variable("w", [], initializer=tf.ones_initializer())
    x = tf.reduce_mean(features)
    if KIND in ("queue", "busy", "queue beside Python"):
        with tf.control_dependencies([tf.py_func(lambda: told("blocked"), [], [])]):
            x += tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
    if KIND == "busy":
        threading.Thread(target=computing, daemon=True).start()
    if KIND == "py_func":
        x += tf.py_func(waiting, [x], tf.float32)
    if KIND == "evaluation" and mode == "eval":
        with tf.control_dependencies([tf.py_func(lambda: told("blocked"), [], [])]):
            x += tf.FIFOQueue(1, [tf.float32], [[]]).dequeue()
    loss = tf.square(x * weight)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def numbers():
    while True:
        yield 1.0

def rows():
    yield 1.0
    yield waiting(1.0)

def input_fn():
    if KIND == "queue beside Python":
        return tf.data.Dataset.from_generator(numbers, tf.float32, []).batch(1)
    if KIND == "input":
        return tf.data.Dataset.from_generator(rows, tf.float32, []).batch(1)
    return tf.data.Dataset.from_tensors(tf.constant([1.0])).repeat()

class Hook(tf.train.SessionRunHook):
    def end(self, session):
        if KIND == "fork":
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1e6,))
            child.start()
            time.sleep(2)
            child.terminate()
            child.join()
            time.sleep(5)
            told(child.exitcode)
    def begin(self):
        if KIND == "begin":
            waiting(0)
    def after_run(self, run_context, run_values):
        if KIND == "hook":
            waiting(0)

KIND = sys.argv[2]
config = estimator.RunConfig(sys.argv[1], save_checkpoints_steps=5, log_step_count_steps=None)
model = estimator.Estimator(model_fn, config=config)
try:
    if KIND == "evaluation":
        trained = estimator.TrainSpec(input_fn, max_steps=1000)
        evaluated = estimator.EvalSpec(input_fn, steps=None, start_delay_secs=0, throttle_secs=0)
        estimator.train_and_evaluate(model, trained, evaluated)
    else:
        model.train(input_fn, steps=1000, hooks=[Hook()])
finally:
    told("finally")
"""


def started(folder, kind):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder), kind],
        env={**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(folder, kind, number, times=1):
    """What a blocked script writes after some signals: its lines, its log and its exit status."""
    process = started(folder, kind)
    temporary = process.stdout.readline().strip()
    assert process.stdout.readline() == "blocked\n"
    for _ in range(times):
        time.sleep(0.3)
        process.send_signal(number)
    lines, log = process.communicate(timeout=60)
    assert not os.path.exists(temporary), log
    return lines.split(), log, process.returncode


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_step_that_waits_for_a_queue_is_cancelled(tmp_path, number):
    lines, log, code = ended(tmp_path, "queue", number)
    assert (lines, code) == (["finally", "exit"], 128 + number)
    assert f"{number.name}: the current step made no progress and was cancelled." in log


@pytest.mark.slow
def test_a_second_signal_ends_a_step_beside_a_busy_thread(tmp_path):
    lines, log, code = ended(tmp_path, "busy", signal.SIGTERM, times=2)
    assert (lines, code) == (["finally", "exit"], 143), log


@pytest.mark.slow
def test_a_step_that_waits_in_python_ends_with_the_process(tmp_path):
    """Nothing brings the main thread back: what is registered runs in another one."""
    lines, _, code = ended(tmp_path, "py_func", signal.SIGTERM)
    assert (lines, code) == (["exit"], 143)


@pytest.mark.slow
def test_a_step_whose_input_is_python_is_cancelled_and_not_saved(tmp_path):
    lines, log, code = ended(tmp_path, "queue beside Python", signal.SIGTERM)
    assert (lines, code) == (["finally", "exit"], 143)
    assert "the current step made no progress and was cancelled." in log
    assert not (tmp_path / "model.ckpt-1.index").exists()


@pytest.mark.slow
def test_an_input_that_waits_in_python_leaves_a_checkpoint(tmp_path):
    lines, log, code = ended(tmp_path, "input", signal.SIGTERM)
    assert (lines, code) == (["finally", "exit"], 143)
    assert (tmp_path / "model.ckpt-1.index").exists(), log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "times", "told"),
    [
        ("begin", 1, "training ended at once, before its first step."),
        ("hook", 2, "training ended at once, because a second signal came."),
        ("evaluation", 1, "the evaluation, and training, ended at once."),
    ],
)
def test_what_has_nothing_to_save_ends_at_once(tmp_path, kind, times, told):
    lines, log, code = ended(tmp_path, kind, signal.SIGTERM, times)
    assert (lines, code) == (["finally", "exit"], 143), log
    assert f"SIGTERM: {told}" in log


@pytest.mark.slow
def test_a_signal_to_a_forked_child_is_the_childs(tmp_path):
    process = started(tmp_path, "fork")
    lines, log = process.communicate(timeout=60)
    assert lines.split()[1:] == ["-15", "finally", "exit"], log
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["queue", "hook"])
def test_in_a_session_a_signal_ends_the_process_at_once(tmp_path, kind, monkeypatch):
    """As in the original: nothing is saved, and nothing that a script registered runs."""
    monkeypatch.setenv("TPU_ESTIMATOR_COMPAT_RUNTIME", "session")
    process = started(tmp_path, kind)
    os.rmdir(process.stdout.readline().strip())
    assert process.stdout.readline() == "blocked\n"
    process.terminate()
    lines, _ = process.communicate(timeout=60)
    assert (lines, process.returncode) == ("", -signal.SIGTERM)
    assert [path.name for path in tmp_path.glob("*.index")] == ["model.ckpt-0.index"]
