"""How long runs between two turns of the hooks are: what hooks ask for, and what time allows."""

import types

import pytest

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.hooks import Pacer
from tpu_estimator_compat.runtime.tuning import Tuning


class Wants:
    """A hook that wants control after so many steps; None for never."""

    def __init__(self, steps):
        self._steps = steps

    def steps_until_control(self, global_step):
        return self._steps


def plans(*hooks, loop=None, seconds_per_step=0.01, increment=1, runs=5, **numbers):
    """The lengths of the first runs, whose steps take so long by the pacer's clock."""
    now = 100.0
    pacer = Pacer(hooks, loop, Tuning(clock=lambda: now, **numbers))
    session = types.SimpleNamespace()
    lengths, global_step = [], 0
    for _ in range(runs):
        pacer.before_run(session, global_step)
        lengths.append(session.steps_per_run)
        now += seconds_per_step * session.steps_per_run
        global_step += increment * session.steps_per_run
        session.steps_last_run = session.steps_per_run
        pacer.after_run(session, global_step)
        now += 5.0  # between runs: nobody's time
    return lengths


@pytest.mark.parametrize("hooks", [[], [Wants(None)], [Wants(1000), Wants(None)]])
def test_a_run_takes_as_long_as_tuning_says(hooks):
    assert plans(*hooks) == [1, 2, 100, 100, 100]
    assert plans(*hooks, longest_run=0.5) == [1, 2, 50, 50, 50]


def test_the_most_impatient_hook_counts():
    assert plans(Wants(40), Wants(30), Wants(None)) == [1, 2, 30, 30, 30]
    assert plans(object()) == [1] * 5  # it does not say


def test_a_slow_step_is_a_run():
    assert plans(seconds_per_step=3.0) == [1, 2, 1, 1, 1]


def test_hooks_count_global_steps():
    assert plans(Wants(30), increment=3) == [1, 2, 10, 10, 10]


def test_with_tpu_semantics_the_loop_counts():
    assert plans(Wants(3), loop=IterationsPerLoopCounter(7, "count")) == [7] * 5
    in_seconds = IterationsPerLoopCounter(2, "seconds")
    assert plans(Wants(3), loop=in_seconds) == [1, 2, 200, 200, 200]


def test_a_run_that_made_no_steps_says_nothing():
    pacer = Pacer([], None, Tuning(clock=lambda: 0.0))
    session = types.SimpleNamespace(steps_last_run=0)
    for _ in range(3):
        pacer.before_run(session, 0)
        pacer.after_run(session, 0)
        assert session.steps_per_run == 1
