from unittest import mock

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.legacy_models import make_estimator, train_input_fn
from tensorflow.python.training import basic_session_run_hooks as hooks_lib

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.hooks import Schedule


class Wants:
    def __init__(self, steps):
        self._steps = steps

    def steps_until_control(self, global_step):
        return self._steps


def plans(*hooks, loop=None, seconds_per_step=0.01, by_one=True, runs=5, **numbers):
    """The lengths of the first runs, whose steps take so long by the schedule's clock."""
    now = 100.0
    numbers = tuning.Tuning(clock=lambda: now, **numbers)
    with mock.patch.object(tuning, "NUMBERS", numbers):
        schedule = Schedule(hooks, loop, counts_by_one=lambda: by_one)
    limits = schedule.limits
    lengths, global_step = [], 0
    for _ in range(runs):
        schedule.before_run(global_step)
        lengths.append(limits.steps)
        now += seconds_per_step * limits.steps
        global_step += limits.steps
        schedule.after_run(limits.steps)
        now += 5.0  # between runs: nobody's time
    return lengths


@pytest.mark.parametrize("hooks", [[], [Wants(None)], [Wants(1000), Wants(None)]])
def test_a_run_takes_as_long_as_tuning_says(hooks):
    assert plans(*hooks) == [1, 2, 100, 100, 100]
    assert plans(*hooks, piece=0.5) == [1, 2, 50, 50, 50]


def test_the_most_impatient_hook_counts():
    assert plans(Wants(40), Wants(30), Wants(None)) == [1, 2, 30, 30, 30]
    assert plans(object()) == [1] * 5  # it does not say


def test_hooks_of_every_step_are_asked_before_others():
    asked = []

    class Asked(Wants):
        def steps_until_control(self, global_step):
            asked.append(self)
            return 1 if self is every and global_step < 4 else self._steps

    never, every, often = Asked(None), Asked(20), Asked(10)
    assert plans(never, every, often, runs=7) == [1, 1, 1, 1, 10, 10, 10]
    assert asked == [never, *[every] * 4, *[every, never, often] * 3]


def test_a_slow_step_is_a_run():
    assert plans(seconds_per_step=3.0) == [1, 2, 1, 1, 1]


def test_a_loop_would_pass_the_step_of_a_counter_of_its_own():
    assert plans(Wants(30), by_one=False) == [1] * 5
    seven = IterationsPerLoopCounter(7, "count")
    assert plans(Wants(30), loop=seven, by_one=False) == [7] * 5  # as on a TPU


def test_with_tpu_semantics_the_loop_counts():
    assert plans(Wants(3), loop=IterationsPerLoopCounter(7, "count")) == [7] * 5
    in_seconds = IterationsPerLoopCounter(2, "seconds")
    assert plans(Wants(3), loop=in_seconds) == [1, 2, 200, 200, 200]


def test_a_run_that_made_no_steps_says_nothing():
    schedule = Schedule([], None)
    for _ in range(3):
        schedule.before_run(0)
        schedule.after_run(0)
        assert schedule.limits.steps == 1


def test_limits_depend_on_hooks_and_loop():
    off_tpu = Schedule([hooks_lib.StopAtStepHook(num_steps=1)], None).limits
    assert (off_tpu.reads_after_loop, off_tpu.host_calls_may_lag) == (False, True)
    on_tpu = Schedule([object()], IterationsPerLoopCounter(7, "count")).limits
    assert (on_tpu.reads_after_loop, on_tpu.host_calls_may_lag) == (True, False)


def test_a_loop_may_be_given_in_seconds(tmp_path, strategy):
    class Lengths(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            steps.append(int(run_context.session.run(tf.train.get_global_step())))

    steps = []
    estimator = make_estimator(tmp_path, use_tpu=True, loop="1s", train_distribute=strategy(1))
    estimator.train(train_input_fn, hooks=[Lengths()], steps=5000)
    assert steps[-1] == 5000
    assert max(np.diff(steps)) > 50  # a second holds many of these steps
