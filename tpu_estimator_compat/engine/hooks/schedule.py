"""The schedule of a call: how many steps are made before the hooks get control again."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.engine.hooks import traits
from tpu_estimator_compat.engine.runtime.tuners import RunTuner
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.session import read_policy
from tpu_estimator_compat.engine.session.run_limits import RunLimits


class Schedule:
    """Divides a call into runs: says before each how many steps it makes, and keeps time of them.

    With TPU rules a run is a loop of `iterations_per_loop` steps, or one that takes as long.
    Else each hook says when it next needs control, and the least of the answers counts.

    Args:
      hooks: everyone who listens.
      loop: the length of a loop with TPU rules; None to run as long as the hooks allow.
      tuning: the numbers that decide how long a run is.
      ref_variables: whether variables are read as TensorFlow 1's ref variables were.
      interrupted: asked within long runs whether to end them early.

    Attributes:
      limits: the limits of the next run, for the sessions that make it.
    """

    def __init__(
        self,
        hooks: Sequence[traits.Hook],
        loop: IterationsPerLoopCounter | None,
        tuning: Tuning = DEFAULTS,
        *,
        ref_variables: bool = False,
        interrupted: Callable[[], bool] = lambda: False,
    ):
        self.limits = RunLimits(
            reads=read_policy.policy(in_loops=loop is not None, ref_variables=ref_variables),
            host_calls_may_lag=not any(traits.of(hook).looks_at_host_calls for hook in hooks),
            interrupted=interrupted,
        )
        self._hooks = list(hooks)
        self._asked = self._hooks
        self._loop = loop
        self._tuning = tuning
        self._tuner = RunTuner()
        self._step_increment = 1
        self._started = 0.0
        self._first_step = 0

    def run(self, monitored: Any, fetches: list[Any]) -> tuple[list[Any], Any]:
        """Makes a run.

        Args:
          monitored: a MonitoredSession whose sessions are of `limits`.
          fetches: tensors and operations of each run.

        Returns:
          The values, and the session that made the run.

        Raises:
          What a step or a hook raised, be it StopIteration: so this is no generator of runs.
        """
        # Timers of hooks go by the global step; in an evaluation it stands still.
        self.before_run(monitored._tf_sess().global_step())
        values = monitored.run(fetches)
        session = monitored._tf_sess()
        self.after_run(session.steps_last_run, session.global_step())
        return values, session

    def before_run(self, global_step: int) -> None:
        """Plans the next run."""
        self._first_step = global_step
        self.limits.steps = self._plan(global_step)
        self._started = self._tuning.clock()

    def after_run(self, steps: int, global_step: int) -> None:
        """Learns from the run of `steps` steps that just ended."""
        if not steps:
            return
        self._tuner.record(steps, self._tuning.clock() - self._started)
        self._step_increment = max(1, (global_step - self._first_step) // steps)
        if self._loop is None and steps > 1:
            for hook in self._hooks:
                traits.skipped(hook, steps - 1)

    def _plan(self, global_step: int) -> int:
        if self._loop is not None:
            return self._within_loop(self._loop, global_step)
        steps = []
        seconds = [self._tuning.piece]
        for hook in self._asked:
            demand = traits.demand(hook, global_step)
            if demand.seconds is not None:
                seconds.append(demand.seconds)
            if demand.steps is not None:
                steps.append(self._in_steps(demand.steps))
                if steps[-1] <= 1:
                    self._ask_first(hook)
                    return 1
        return max(1, min([*steps, self._tuner.steps_within(min(seconds))]))

    def _ask_first(self, hook: traits.Hook) -> None:
        """From now on asks `hook` first: who has control around every step saves asking others."""
        if self._asked[0] is not hook:
            self._asked = [hook, *(other for other in self._asked if other is not hook)]

    def _within_loop(self, loop: IterationsPerLoopCounter, global_step: int) -> int:
        limits = [
            self._in_steps(steps)
            for hook in self._hooks
            if traits.of(hook).bounds_training
            and (steps := traits.demand(hook, global_step).steps) is not None
        ]
        return max(1, min([self._steps_of(loop), *limits]))

    def _steps_of(self, loop: IterationsPerLoopCounter) -> int:
        return loop.value if loop.unit == "count" else self._tuner.steps_within(loop.value)

    def _in_steps(self, global_steps: float) -> int:
        """Steps of the loop that raise the global step by no more than `global_steps`.

        A limit with a fraction is reached by the first step beyond the limit.
        """
        if math.isinf(global_steps):
            return sys.maxsize
        return math.ceil(global_steps) // self._step_increment
