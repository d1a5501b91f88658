"""Loops on the devices: how long they are, and what ends them."""

import time

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, make_model_fn, train_input_fn

from tpu_estimator_compat.engine.loop.device_loop import DeviceLoop


class Loops(tf.train.SessionRunHook):
    """Notes when it has its turn, and at which step."""

    def begin(self):
        self.seconds, self.steps = [], []
        self._step = tf.train.get_global_step()

    def before_run(self, run_context):
        self._started = time.perf_counter()

    def after_run(self, run_context, run_values):
        self.seconds.append(time.perf_counter() - self._started)
        self.steps.append(int(run_context.session.run(self._step)))

    @property
    def lengths(self):
        return list(np.diff([0, *self.steps]))


@pytest.fixture
def traces(monkeypatch):
    """Counts how often the loop is traced."""
    made = []
    build = DeviceLoop._build

    def counted(self, *args):
        made.append(args)
        return build(self, *args)

    monkeypatch.setattr(DeviceLoop, "_build", counted)
    return made


def sleeps(seconds):
    """A model_fn whose step takes so many seconds, whatever the machine."""

    def train_op(loss, params):
        with tf.control_dependencies([tf.py_func(lambda: time.sleep(seconds), [], [])]):
            return tf.assign_add(tf.train.get_global_step(), 1)

    return make_model_fn(train_op)


def train(tmp_path, strategy, loop, **limits):
    hook = Loops()
    estimator = make_estimator(
        tmp_path,
        sleeps(0.01),
        use_tpu=True,
        loop=loop,
        train_distribute=strategy(1),
        log_step_count_steps=None,
        save_checkpoints_steps=10**6,
    )
    estimator.train(train_input_fn, hooks=[hook], **limits)
    return hook


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("1s", 1.0), pytest.param("2s", 2.0, marks=pytest.mark.full)],
)
def test_loops_take_the_time_that_was_asked_for(tmp_path, strategy, traces, asked, seconds):
    hook = train(tmp_path, strategy, asked, steps=int(7 * seconds / 0.01))
    settled = hook.seconds[3:-1]  # the last loop has what steps are left
    assert len(settled) >= 2, hook.seconds
    assert abs(np.median(settled) - seconds) < 0.1 * seconds, hook.seconds
    assert len(set(hook.lengths)) > 2  # n changed,
    assert len(traces) <= 2  # and nothing was traced anew: once, or once per executor


def test_loops_of_a_number_of_steps(tmp_path, strategy, traces):
    hook = train(tmp_path, strategy, 7, steps=24)
    assert hook.lengths == [7, 7, 7, 3]
    assert len(traces) <= 2
