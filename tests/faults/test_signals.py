"""A signal ends training, wherever it is blocked, and what a script registered runs."""

import os
import signal
import subprocess
import sys
import time

import pytest
from support import TESTS, python_path

SCRIPT = """
import atexit, collections, ctypes, itertools, multiprocessing, os, re
import sys, tempfile, threading, time
atexit.register(print, "first")  # before TensorFlow's own, and not flushed
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

def model_fn(features, labels, mode, params=None):
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
    if KIND == "host call":
        host_call = lambda x: tf.py_func(waiting, [x], tf.float32), [tf.reshape(loss, [1])]
        return estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=host_call
        )
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def numbers():
    while True:
        yield 1.0

def rows():
    yield 1.0
    yield waiting(1.0)

def input_fn(params=None):
    if KIND == "queue beside Python":
        return tf.data.Dataset.from_generator(numbers, tf.float32, []).batch(1)
    if KIND == "input":
        return tf.data.Dataset.from_generator(rows, tf.float32, []).batch(1)
    return tf.data.Dataset.from_tensors(tf.constant([1.0])).repeat()

def blocking(descriptor):  # in C, which no signal interrupts
    told("blocked")
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)

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
        if KIND == "disk":
            os.fsync = blocking
        if KIND in ("steps", "lock", "short lock", "match"):
            told("blocked")
            if KIND == "match":
                re.match("(a*)*b", "a" * 40)
            many = {"lock": 10**12, "short lock": 6 * 10**8}.get(KIND, 0)
            collections.deque(itertools.repeat(None, many), maxlen=0)
            Hook.after_run = lambda *unused: time.sleep(0.01)

KIND = sys.argv[2]
every = 1000 if KIND == "steps" else 5
given = dict(model_dir=sys.argv[1], save_checkpoints_steps=every, log_step_count_steps=None)
if KIND == "host call":
    config = estimator.tpu.RunConfig(**given)
    model = estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=1)
else:
    model = estimator.Estimator(model_fn, config=estimator.RunConfig(**given))
try:
    if KIND == "evaluation":
        trained = estimator.TrainSpec(input_fn, max_steps=1000)
        evaluated = estimator.EvalSpec(input_fn, steps=None, start_delay_secs=0, throttle_secs=0)
        estimator.train_and_evaluate(model, trained, evaluated)
    else:
        model.train(input_fn, steps=1000, hooks=[Hook()])
except BaseException:
    exec(sys.argv[3])
finally:
    told("finally")
"""


def started(folder, kind, ending="raise", command=()):
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, *command, str(folder / "script.py"), str(folder), kind, ending],
        env={**os.environ, "PYTHONPATH": python_path.joined(TESTS.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(folder, kind, number, times=1, **how):
    """What a blocked script writes after some signals: its lines, its log and its exit status."""
    process = started(folder, kind, **how)
    temporary = process.stdout.readline().strip()
    assert process.stdout.readline() == "blocked\n"
    for _ in range(times):
        time.sleep(0.3)
        process.send_signal(number)
    lines, log = process.communicate(timeout=60)
    if process.returncode == -number:
        os.rmdir(temporary)
        return lines.split(), log, process.returncode
    assert not os.path.exists(temporary), log
    *lines, last = lines.split()
    assert last == "first"
    return lines, log, process.returncode


RUN = ("-m", "tpu_estimator_compat", "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "number", "ending", "command", "status"),
    [
        ("input", signal.SIGTERM, "raise", (), 143),
        ("input", signal.SIGTERM, "raise SystemExit('told')", RUN, 1),
        ("input", signal.SIGINT, "raise", (), 130),
        ("input", signal.SIGINT, "raise", RUN, 130),
        ("input", signal.SIGINT, "sys.exit(3)", (), 3),
        ("input", signal.SIGINT, "sys.exit(3)", RUN, 3),
        ("input", signal.SIGINT, "sys.exit()", (), 0),
        ("input", signal.SIGINT, "exit(259)", (), 3),
        ("input", signal.SIGTERM, "pass", (), 0),
        ("queue", signal.SIGHUP, "1 / 0", (), 1),
    ],
)
def test_the_exit_status_is_pythons(tmp_path, kind, number, ending, command, status):
    """Of an end without Python's own, which would wait for what blocks."""
    lines, log, code = ended(tmp_path, kind, number, ending=ending, command=command)
    assert (lines, code) == (["finally", "exit"], status), log


@pytest.mark.slow
def test_a_second_signal_ends_a_write_that_blocks(tmp_path):
    lines, log, code = ended(tmp_path, "disk", signal.SIGTERM, times=2)
    assert (lines, code) == (["exit"], 143), log


@pytest.mark.slow
def test_one_signal_ends_a_process_whose_lock_is_held(tmp_path):
    process = started(tmp_path, "lock")
    assert [process.stdout.readline() for _ in range(2)][1] == "blocked\n"
    time.sleep(0.3)
    process.terminate()
    before = time.monotonic()
    assert process.wait(timeout=60) == -signal.SIGALRM, process.stderr.read()
    assert 15 < time.monotonic() - before < 30


@pytest.mark.slow
def test_a_lock_that_is_held_for_seconds_loses_no_step(tmp_path):
    lines, log, code = ended(tmp_path, "short lock", signal.SIGTERM)
    assert (lines, code) == (["finally", "exit"], 143), log
    assert (tmp_path / "model.ckpt-1.index").exists(), log


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_host_call_that_waits_in_python_ends_with_the_process(tmp_path, number, status, times):
    lines, log, code = ended(tmp_path, "host call", number, times)
    assert (lines, code) == (["exit"], status), log


@pytest.mark.slow
def test_signals_that_come_together_lose_no_checkpoint(tmp_path):
    """GNU's `timeout` signals the process, and its group at once."""
    process = started(tmp_path, "steps")
    assert [process.stdout.readline() for _ in range(2)][1] == "blocked\n"
    time.sleep(0.5)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 143, log
    assert len(list(tmp_path.glob("model.ckpt-*.index"))) == 2, log  # before the steps, and after


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
        ("match", 2, "training ended at once, because a second signal came."),
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
    assert lines.split()[1:] == ["-15", "finally", "exit", "first"], log
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
