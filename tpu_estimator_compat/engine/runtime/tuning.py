"""The numbers that decide how steps are cut into calls, and on which executor calls run."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

DEFAULT = ""
SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The numbers of `Tuner`, of the queue of host calls, and of dispatches to JAX.

    In brackets: what `tests/benchmarks/run.py --what` measures of a number.

    Attributes:
      piece: [beside_bare] seconds of a call. While the devices run, Python gets no signals: a loop
        of an hour would leave SIGTERM and Ctrl-C unanswered for an hour. Without TPU semantics,
        where nobody promised how long a loop is, hooks get their turn as often, for the clocks of
        some and for progress that a person can watch.
      short_piece: [listening, predict] seconds of a call while executors take turns, and where
        something waits for its end: host calls in a queue, a caller who wants one prediction.
      few_steps: [first_step] steps of the first call, whose steps nobody has timed. Of fewer steps
        the time is not compared: Python takes the larger part of it.
      small_step: [steps, every_step] seconds. What a call and a loop cost is a small part of larger
        steps, which are busy with ops, not with scheduling them.
      tracing: [every_step, predict] seconds that tracing a function takes, at the least. A call
        costs a small step 0.3 ms more than a loop does, a loop of one step 0.2 ms more than none.
      many_ops: [first_step] operations of a step that is made alone from the first on. A loop
        around it has to be traced, taken apart and optimised anew: a fourth of what comes before
        the first step.
      first_calls: [steps, large] multiple of the first call's time for which such steps are made
        alone: in a loop they took 0.92 of the time, as one step begins while another ends.
      turns: [steps] runs of the default executor alone, and then of each, one after the other.
      clearly_faster: [steps] the part of the default's time that the other must stay below. Steps
        of small ops took 0.6 times as long on one thread; steps that keep two threads busy took 1.3
        times as long. What lies in between may be the machine's other work.
      most_batches: [predict] batches that one call predicts; all their predictions are in memory.
      queue_bytes: [memory] bytes of tensors that wait for host calls.
      queue_calls: [listening] host calls that wait.
      trial_calls: [listening] host calls that are timed: enough to meet a summary that is written
        every 100 steps.
      quick_call: [listening] seconds that a host call takes on average to be a part of its step.
        With a queue a step took 0.04 to 0.08 ms more of two cores than with its call in it. What a
        queue can save is at most the time of the call, where a core is free to make it meanwhile: a
        call has to take some times those for a queue to be worth it. The time of the step makes no
        difference to either.
      dispatch_steps: [runtimes] steps that the JAX runtime hands to the devices at once.
      dispatch_bytes: [memory] bytes of their input and results that a replica holds. The results of
        one dispatch wait for the host while the devices run the next.
      clock: tells the seconds since some moment.
    """

    piece: float = 1.0
    short_piece: float = 0.05
    few_steps: int = 8
    small_step: float = 2e-3
    tracing: float = 0.1
    many_ops: int = 1000
    first_calls: float = 10.0
    turns: int = 5
    clearly_faster: float = 0.9
    most_batches: int = 32
    queue_bytes: int = 64 * 2**20
    queue_calls: int = 1024
    trial_calls: int = 500
    quick_call: float = 2e-4
    dispatch_steps: int = 64
    dispatch_bytes: int = 16 * 2**20
    clock: Callable[[], float] = time.perf_counter

    def patience(self, ops: int, replicas: int) -> float:
        """The multiple of the first call's time for which steps of so many ops are made alone.

        A loop around several replicas costs some times as much as one around one.
        """
        if ops < self.many_ops:
            return 0.0
        return self.first_calls if replicas == 1 else math.inf

    def queue_capacity(self, size: int) -> int | None:
        """The number of host calls that may wait, of `size` bytes each; None for none."""
        capacity = min(self.queue_calls, self.queue_bytes // max(1, size))
        return capacity if capacity > 1 else None

    def steps_of_dispatch(self, size: int | None, loop: int | None) -> int:
        """The number of steps of one JAX dispatch, on devices that are quick in loops.

        Args:
          size: bytes of a replica's input and results in one step; None where that is not known: a
            dispatch then makes one step.
          loop: steps between two turns of the host; None where that is not known.
        """
        if size is None:
            return 1
        steps = min(self.dispatch_steps, self.dispatch_bytes // max(1, size))
        return max(1, steps if loop is None else min(steps, loop))


DEFAULTS = Tuning()
