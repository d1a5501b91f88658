"""Decides the number of steps of each run, after which hooks get control."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.functions.tuner import Pace
from tpu_estimator_compat.engine.hooks import traits
from tpu_estimator_compat.engine.loop.runner import RunLimits


class Schedule:
    """Divides a call into runs: decides the number of steps of each, and times them.

    With a `loop`, as in training with `use_tpu=True`, a run has that many steps or seconds. If
    `loop` is None, a run ends where the first hook needs control; it has one step unless each step
    `counts_by_one`, since a loop would pass the global step that a hook waits for. Sessions read
    the `limits` of each run.
    """

    def __init__(
        self,
        hooks: Sequence[traits.Hook],
        loop: IterationsPerLoopCounter | None,
        *,
        counts_by_one: Callable[[], bool] = lambda: True,
        interrupted: Callable[[], bool] = lambda: False,
    ):
        self.limits = RunLimits(
            reads_after_loop=loop is not None,
            host_calls_may_lag=not any(traits.of(hook).looks_at_host_calls for hook in hooks),
            interrupted=interrupted,
        )
        self._hooks = list(hooks)
        self._asked = self._hooks
        self._loop = loop
        self._tuning = tuning.NUMBERS
        self._pace = Pace(1, 2)
        self._counts_by_one = counts_by_one
        self._started = 0.0

    def run(self, monitored: Any, fetches: list[Any]) -> tuple[list[Any], Any]:
        """Makes one run of a MonitoredSession; returns the values of `fetches`, and its session.

        A generator of runs would not do, since a step or hook may raise StopIteration.
        """
        # Timers of hooks use the global step, which is constant in an evaluation.
        self.before_run(monitored._tf_sess().global_step())
        values = monitored.run(fetches)
        session = monitored._tf_sess()
        self.after_run(session.steps_last_run)
        return values, session

    def before_run(self, global_step: int) -> None:
        self.limits.steps = self._plan(global_step)
        self._started = self._tuning.clock()

    def after_run(self, steps: int) -> None:
        if not steps:
            return
        self._pace.record(steps, self._tuning.clock() - self._started)
        if self._loop is None and steps > 1:
            for hook in self._hooks:
                traits.skipped(hook, steps - 1)

    def _plan(self, global_step: int) -> int:
        if self._loop is not None:
            return self._within_loop(self._loop, global_step)
        if not self._counts_by_one():
            return 1
        steps = []
        seconds = [self._tuning.piece]
        for hook in self._asked:
            demand = traits.demand(hook, global_step)
            if demand.seconds is not None:
                seconds.append(demand.seconds)
            if demand.steps is not None:
                steps.append(_in_steps(demand.steps))
                if steps[-1] <= 1:
                    self._ask_first(hook)
                    return 1
        return max(1, min([*steps, self._pace.steps_within(min(seconds))]))

    def _ask_first(self, hook: traits.Hook) -> None:
        """Moves `hook` to the front: while it wants every step, no other hook is asked."""
        if self._asked[0] is not hook:
            self._asked = [hook, *(other for other in self._asked if other is not hook)]

    def _within_loop(self, loop: IterationsPerLoopCounter, global_step: int) -> int:
        limits = [
            _in_steps(steps)
            for hook in self._hooks
            if traits.of(hook).bounds_training
            and (steps := traits.demand(hook, global_step).steps) is not None
        ]
        is_count = loop.unit == "count"
        steps = loop.value if is_count else self._pace.steps_within(loop.value)
        return max(1, min([steps, *limits]))


def _in_steps(steps: float) -> int:
    return sys.maxsize if math.isinf(steps) else math.ceil(steps)
