"""The division of a loop of steps into runs, for hooks and summaries."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass
class Cadence:
    """The outer loop's limits for the next run; sessions made anew within a run share them.

    Attributes:
      steps: steps of the next run that asks for the main targets.
      reads_before_last_step: whether variables that a run of many steps fetches are read before its
        last step, as by a hook that has control around every step, or after all of them.
      reads_after_step: whether the plain value of a variable that is fetched is that after the step
        also where a hook has control around every step: a ref variable's was. What TF's hooks fetch
        as the step is a copy, made before the step.
      host_calls_may_lag: whether host calls may still be made when a run returns.
      interrupted: asked within long runs whether to end them early.
    """

    steps: int = 1
    reads_before_last_step: bool = False
    reads_after_step: bool = False
    host_calls_may_lag: bool = False
    interrupted: Callable[[], bool] = lambda: False
