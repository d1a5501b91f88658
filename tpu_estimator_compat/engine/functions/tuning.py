"""The numbers that decide how many steps a call makes, and on which executor calls run."""

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

    In brackets: the benchmarks of `tests/benchmarks/run.py --what` that measure a number.

    Attributes:
      piece: [beside_bare] seconds of a call. While the devices run, Python gets no signals: a loop
        of an hour would leave SIGTERM and Ctrl-C unanswered for an hour. Without TPU semantics,
        where a script sets no length of loops, hooks get control at the same intervals: some go by
        a clock, and a person wants to see progress.
      short_piece: [listening, predict] seconds of a call while executors take turns, and where
        host calls in a queue, or a caller who wants one prediction, wait for its end.
      few_steps: [first_step] steps of the first call, before any step is timed. Runs of fewer steps
        are not compared: Python takes the larger part of their time.
      small_step: [steps, every_step] seconds of the longest small step. Calls and loops cost larger
        steps only a small part of their time.
      tracing: [every_step, predict] seconds that tracing a function takes at least. A small step
        costs 0.3 ms more in its own call than in a loop; a loop of one, 0.2 ms more than no loop.
      many_ops: [first_step] operations of the smallest large step, which has a call of its own at
        first. To trace, partition and optimise a loop around it would take a fourth of the time
        before the first step.
      first_calls: [steps, large] multiple of the first call's time for which large steps have a
        call each. In a loop they took 0.92 of the time, as one step begins while another ends.
      turns: [steps] runs of the default executor alone, and then of each executor in turn.
      clearly_faster: [steps] the part of the default's time below which the other is taken. Steps
        of small ops took 0.6 times as long on one thread; steps that keep two threads busy took 1.3
        times as long. Ratios in between may come from other work on the machine.
      most_batches: [predict] batches that one call predicts; all their predictions are in memory.
      queue_bytes: [memory] bytes of tensors that wait for host calls.
      queue_calls: [listening] host calls that wait.
      trial_calls: [listening] host calls that are timed: enough to include a summary that is
        written every 100 steps.
      quick_call: [listening] mean seconds of a host call up to which it is a part of its step. A
        queue costs a step 0.04 to 0.08 ms of two cores, and if a core is free, saves at most the
        time of the call: it pays for calls that take several times as long as it costs. The time of
        the step makes no difference.
      dispatch_steps: [runtimes] steps that the JAX runtime hands to the devices at once.
      dispatch_bytes: [memory] bytes of a dispatch's input and results on a replica. The results of
        one dispatch wait for the host while the devices run the next.
      clock: returns the seconds since a fixed moment.
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
        """The multiple of the first call's time for which steps of `ops` ops have a call each.

        0 below `many_ops`; above, infinite for several replicas: loops cost several times as much.
        """
        if ops < self.many_ops:
            return 0.0
        return self.first_calls if replicas == 1 else math.inf

    def queue_capacity(self, size: int) -> int | None:
        """The number of host calls, of `size` bytes each, that may wait; None for no queue."""
        capacity = min(self.queue_calls, self.queue_bytes // max(1, size))
        return capacity if capacity > 1 else None

    def steps_of_dispatch(self, size: int | None, loop: int | None) -> int:
        """The number of steps of one JAX dispatch, on devices that are quick in loops.

        Args:
          size: bytes of a replica's input and results in one step; None where that is not known:
            then a dispatch makes one step.
          loop: steps after which the host has control again; None where that is not known.
        """
        if size is None:
            return 1
        steps = min(self.dispatch_steps, self.dispatch_bytes // max(1, size))
        return max(1, steps if loop is None else min(steps, loop))


NUMBERS = Tuning()
"""The numbers of this process, which loops and schedules read when they are made."""
