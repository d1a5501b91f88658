"""The division of a loop of steps into runs, for hooks and summaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tpu_estimator_compat.engine.session.read_policy import AFTER_LOOP, ReadPolicy


@dataclasses.dataclass
class RunLimits:
    """The outer loop's limits for the next run; sessions made anew within a run share them.

    Attributes:
      steps: steps of the next run that asks for the main targets.
      reads: when a run reads the variables that are fetched.
      host_calls_may_lag: whether host calls may still be made when a run returns.
      interrupted: asked within long runs whether to end them early.
    """

    steps: int = 1
    reads: ReadPolicy = AFTER_LOOP
    host_calls_may_lag: bool = False
    interrupted: Callable[[], bool] = lambda: False
