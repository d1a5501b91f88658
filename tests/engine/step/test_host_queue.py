"""Host calls that are made while later steps run: what they overlap with, and who waits."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat.engine.step import host_queue

from .host_call_models import Calls, model_of


@pytest.mark.parametrize(
    ("through", "loop", "released_in"),
    [("train", 1, 2), ("train", 5, 6), ("train", 100, 20), ("fit", 100, 20)],
)
def test_calls_overlap_with_later_steps(tmp_path, strategy, through, loop, released_in):
    """The first call waits for a step that comes after it: in the next loop, or in a long one."""
    calls = Calls()
    calls.released.clear()

    def in_step(step):
        if step[0] == released_in:
            calls.released.set()

    estimator = make_estimator(
        tmp_path, model_of(calls, in_step), use_tpu=True, loop=loop, train_distribute=strategy(1)
    )
    if through == "train":
        estimator.train(train_input_fn, steps=30)
    else:
        data = train_input_fn({"batch_size": 16})
        estimator.keras_model(train_input_fn).fit(data, steps_per_epoch=30, verbose=0)
    assert calls.in_time
    assert calls.made == list(range(1, 31))


def test_hooks_find_all_calls_made(tmp_path):
    calls = Calls(seconds=0.02)
    seen = []

    class Looks(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            seen.append(len(calls.made))

    estimator = make_estimator(tmp_path, model_of(calls), use_tpu=True, loop=3)
    estimator.train(train_input_fn, steps=9, hooks=[Looks()])
    assert seen == [3, 6, 9]


def test_checkpoints_begin_after_the_host_calls_of_their_steps(tmp_path, monkeypatch):
    calls = Calls(seconds=0.02)
    made = {}
    save = tf.train.Saver.save

    def note(self, session, path, global_step, *others, **more):
        made[global_step] = len(calls.made)
        return save(self, session, path, global_step, *others, **more)

    monkeypatch.setattr(tf.train.Saver, "save", note)
    estimator = make_estimator(
        tmp_path, model_of(calls), use_tpu=True, loop=2, save_checkpoints_steps=4
    )
    estimator.train(train_input_fn, steps=10)
    assert made == {0: 0, 4: 4, 8: 8, 10: 10}


@pytest.mark.parametrize(("through", "step"), [("train", 3), ("train", 10), ("fit", 3)])
def test_an_error_of_a_call_reaches_the_caller(tmp_path, through, step):
    """Also that of the last step, where no checkpoint has waited for the calls."""
    calls = Calls(seconds=0.01, fails_at=step)
    no_checkpoints = {"save_checkpoints_secs": None, "save_checkpoints_steps": None}
    estimator = make_estimator(tmp_path, model_of(calls), use_tpu=True, loop=5, **no_checkpoints)
    model = estimator.keras_model(train_input_fn) if through == "fit" else None

    def train():
        if model is None:
            estimator.train(train_input_fn, steps=10)
        else:
            model.fit(train_input_fn({"batch_size": 16}), steps_per_epoch=10, verbose=0)

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"host call of step {step}"):
        train()
    assert calls.made == list(range(1, step))  # none after the one that failed
    calls.fails_at = None
    calls.made.clear()
    train()
    first = calls.made[0]  # of a model that lives on, the steps go on
    assert calls.made == list(range(first, first + 10))


@pytest.mark.parametrize("kind", ["nan", "error"])
def test_host_calls_of_finished_steps_run_if_a_later_step_fails(tmp_path, kind):
    calls = Calls(seconds=0.02)

    def spoiled(loss):
        step = tf.train.get_global_step()
        if kind == "nan":
            return loss + tf.where(step < 6, 0.0, np.nan)
        with tf.control_dependencies([tf.debugging.assert_less(step, tf.constant(6, tf.int64))]):
            return tf.identity(loss)

    estimator = make_estimator(tmp_path, model_of(calls, loss_of=spoiled), use_tpu=True, loop=4)
    error = tf.train.NanLossDuringTrainingError if kind == "nan" else tf.errors.InvalidArgumentError
    with pytest.raises(error):
        estimator.train(train_input_fn, steps=20)
    # The step with the NaN was made, too.
    assert calls.made == list(range(1, 8 if kind == "nan" else 7))


def test_the_end_of_the_data(tmp_path):
    calls = Calls(seconds=0.01)
    estimator = make_estimator(tmp_path, model_of(calls), use_tpu=True, loop=4)
    estimator.train(lambda params: train_input_fn(params).take(6), steps=20)
    assert calls.made == [1, 2, 3, 4, 5, 6]


def test_a_host_call_that_reads_variables_is_part_of_its_step(tmp_path):
    seen = []

    def call(step):
        now = tf.train.get_global_step().read_value()
        return tf.py_func(lambda s, n: seen.append((int(s[0]), int(n))), [step, now], [])

    estimator = make_estimator(tmp_path, model_of(call), use_tpu=True, loop=5)
    estimator.train(train_input_fn, steps=10)
    assert seen == [(n, n) for n in range(1, 11)]


def test_a_variable_of_the_calls_is_read_when_they_are_made(tmp_path):
    shown = []

    def call(step):
        count = tf.get_local_variable("calls", [], tf.int32, tf.zeros_initializer())
        slow = tf.py_func(lambda s: time.sleep(0.02), [step], [])
        with tf.control_dependencies([slow]):
            return tf.assign_add(count, 1)

    estimator = make_estimator(tmp_path, model_of(call), use_tpu=True, loop=3)
    log = tf.train.LoggingTensorHook(
        {"calls": "calls/Read/ReadVariableOp:0"},
        every_n_iter=1,
        formatter=lambda values: shown.append(int(values["calls"])) or "",
    )
    estimator.train(train_input_fn, steps=9, hooks=[log])
    assert shown == [3, 6, 9]


def test_more_calls_than_may_wait(tmp_path, tuned):
    tuned(queue_calls=4)
    calls = Calls(seconds=0.005)
    estimator = make_estimator(tmp_path, model_of(calls), use_tpu=True, loop=50)
    estimator.train(train_input_fn, steps=50)
    assert calls.made == list(range(1, 51))


def test_how_many_calls_may_wait():
    def feed(*shape, dtype=tf.float32):
        return tf.placeholder(dtype, shape)

    with tf.Graph().as_default():
        assert host_queue.capacity_for([feed(1), feed(8, 10)]) == 1024
        mebibyte = feed(1024, 256)
        assert host_queue.capacity_for([mebibyte]) == 64
        assert host_queue.capacity_for([mebibyte] * 32) == 2
        assert host_queue.capacity_for([mebibyte] * 33) is None
        assert host_queue.capacity_for([feed(None, 10)]) is None
        assert host_queue.capacity_for([feed(1, dtype=tf.string)]) is None
        assert host_queue.capacity_for([]) is None
