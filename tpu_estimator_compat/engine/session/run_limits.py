"""Limits for the next run of a session's steps, set by the schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class RunLimits:
    """The limits for the next run; sessions that replace a broken one share them.

    Attributes:
      steps: steps of the next run of the plan's targets.
      reads_after_loop: whether hooks get control after TPU loops, and see variables as they are
        then: see `VariableReader`.
      host_calls_may_lag: whether host calls may be unfinished when a run returns.
    """

    steps: int = 1
    reads_after_loop: bool = True
    host_calls_may_lag: bool = False
    interrupted: Callable[[], bool] = lambda: False
