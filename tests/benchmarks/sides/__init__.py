"""Sides: one module per way to run a model; each has `train`, `evaluate` and `predict`.

`train(model, gate, settings)` steps until the gate closes the process. `evaluate` and `predict`
prepare once and return a function of the number of examples that runs one whole call and returns
its `Timing`. `again` prepares nothing: it returns a function that makes one short call of a task
and returns its `Cost`.
"""

from __future__ import annotations

import dataclasses
import time

LISTENERS = ("", "host_call", "hook", "timer_hook", "every_step", "slow", "slow_host_call")
SLEEP = 0.005
"""Seconds."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a side is to run.

    Attributes:
      loop: steps per execution, iterations per loop; what the side's call makes without a return.
      use_tpu: TPU semantics, for this package.
      jit: compile with XLA.
      model_dir: directory of an estimator.
      listen: who listens to this package, one of `LISTENERS`: nobody (""), a "host_call" that
        writes four scalars in every step, a "hook" every 100 steps, a "timer_hook" that is a
        subclass of TensorFlow's and logs as often, or one in "every_step"; nobody to steps that
        sleep (`SLEEP`), "slow", or a "slow_host_call" that sleeps as long as they do.
      runtime: of this package.
    """

    loop: int
    use_tpu: bool
    jit: bool
    model_dir: str
    listen: str = ""
    runtime: str = "tensorflow"


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of all cores together."""

    seconds: float
    cpu: float


class Timing:
    """Times of one evaluate or predict call.

    Attributes:
      first: how many examples the first piece of work gave.
      seconds_to_first: from the call to that piece's end.
      seconds: of the whole call.
    """

    def __init__(self) -> None:
        self.first = 0
        self.seconds_to_first = 0.0
        self.seconds = 0.0
        self._started = time.perf_counter()

    def piece(self, examples: int) -> None:
        """A piece of work has ended; only the first one counts."""
        if not self.first:
            self.first = examples
            self.seconds_to_first = time.perf_counter() - self._started

    def end(self) -> Timing:
        self.seconds = time.perf_counter() - self._started
        return self
