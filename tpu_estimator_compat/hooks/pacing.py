"""Decides how many steps the inner loop runs before the hooks get control again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tpu_estimator_compat.config import IterationsPerLoopCounter
from tpu_estimator_compat.hooks import traits
from tpu_estimator_compat.session.cadence import Cadence

# Without TPU semantics nobody promised how long a loop is: return often enough for Ctrl-C, for
# hooks that go by the clock, and for progress that a person can watch.
_LONGEST_SECONDS = 1.0


def cadence_for(
    hooks: Sequence[traits.Hook],
    loop: IterationsPerLoopCounter | None,
    *,
    interrupted: Callable[[], bool] = lambda: False,
) -> Cadence:
    """The cadence of a loop before its first run.

    Args:
      hooks: everyone who listens.
      loop: see `Pacer`.
      interrupted: asked within long runs whether to end them early.
    """
    return Cadence(
        reads_before_last_step=loop is None,
        host_calls_may_lag=not any(traits.of(hook).looks_at_host_calls for hook in hooks),
        interrupted=interrupted,
    )


class Pacer:
    """Says before each run how many steps it makes, and keeps time of the steps.

    Args:
      hooks: everyone who listens.
      loop: with TPU semantics, the length of a loop (`iterations_per_loop`) in steps or seconds, or
        None to run as long as the hooks allow.
      cadence: what the sessions of the loop go by.
    """

    def __init__(
        self,
        hooks: Sequence[traits.Hook],
        loop: IterationsPerLoopCounter | None,
        cadence: Cadence,
    ):
        self._hooks = list(hooks)
        self._loop = loop
        self._cadence = cadence
        self._seconds_per_step: float | None = None
        self._step_increment = 1
        self._started = 0.0
        self._first_step = 0

    def before_run(self, global_step: int) -> None:
        """Plans the next run."""
        self._first_step = global_step
        self._cadence.steps = self._plan(global_step)
        self._started = time.perf_counter()

    def after_run(self, steps: int, global_step: int) -> None:
        """Learns from the run of `steps` steps that just ended."""
        if not steps:
            return
        # The first run also traces and compiles: it says nothing about the speed of steps.
        if self._seconds_per_step is None:
            self._seconds_per_step = 0.0
        else:
            self._seconds_per_step = (time.perf_counter() - self._started) / steps
        self._step_increment = max(1, (global_step - self._first_step) // steps)
        if self._loop is None:
            for hook in self._hooks:
                traits.skipped(hook, steps - 1)

    def _plan(self, global_step: int) -> int:
        demands = [traits.demand(hook, global_step) for hook in self._hooks]
        if self._loop is not None:
            limits = [
                d.steps
                for hook, d in zip(self._hooks, demands, strict=True)
                if d.steps is not None and traits.of(hook).bounds_training
            ]
            return max(1, min([self._steps_of(self._loop), *(self._in_steps(n) for n in limits)]))
        steps = [self._in_steps(d.steps) for d in demands if d.steps is not None]
        seconds = [d.seconds for d in demands if d.seconds is not None]
        return max(1, min([*steps, self._affordable(min([*seconds, _LONGEST_SECONDS]))]))

    def _steps_of(self, loop: IterationsPerLoopCounter) -> int:
        return loop.value if loop.unit == "count" else self._affordable(loop.value)

    def _in_steps(self, global_steps: int) -> int:
        """Steps of the loop that raise the global step by no more than `global_steps`."""
        return global_steps // self._step_increment

    def _affordable(self, seconds: float) -> int:
        if self._seconds_per_step is None:
            return 1
        if not self._seconds_per_step:
            return 2  # enough to take the time of
        return int(seconds / self._seconds_per_step)
