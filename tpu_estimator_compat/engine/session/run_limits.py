"""Limits for the next run of a session's steps, set by the schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tpu_estimator_compat.engine.session.read_policy import AFTER_LOOP, ReadPolicy


@dataclasses.dataclass
class RunLimits:
    """The limits for the next run; sessions that replace a broken one share them.

    Attributes:
      steps: steps of the next run of the plan's targets.
      host_calls_may_lag: whether host calls may be unfinished when a run returns.
    """

    steps: int = 1
    reads: ReadPolicy = AFTER_LOOP
    host_calls_may_lag: bool = False
    interrupted: Callable[[], bool] = lambda: False
