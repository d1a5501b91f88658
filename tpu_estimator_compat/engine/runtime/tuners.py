"""Tuners: they alone decide the number of steps of the next call, and its executor.

A loop that makes calls asks its tuner before each, and tells it afterwards the number of steps made
and their time. The default executor hands every op to a pool of threads: right for
large ops, and most of the cost of a step made of small ones. The single-threaded executor runs them
one after the other. Both run the same kernels in an order that the graph allows, so the numbers are
the same.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable

from tpu_estimator_compat.engine.runtime.tuning import DEFAULT, SINGLE_THREADED, Tuning


@dataclasses.dataclass(frozen=True)
class Call:
    """The next call: its steps, executor and function.

    Attributes:
      steps: the number of steps.
      executor: the executor.
      single: whether by the function of one step, which has no loop.
      timed: whether its time says something about its executor.
    """

    steps: int
    executor: str
    single: bool
    timed: bool


class ExecutorChoice:
    """The executor of the next run, until one is found to be faster.

    Other work on the machine makes runs longer, never shorter, and comes and goes. So the two take
    turns, and the best run of each counts. Of single steps, whose best time tells little, it is the
    median.

    Args:
      tuning: the numbers.
      may_choose: whether the single-threaded executor can run the steps: one device, and no
        functions (branches, loops) in them.
      single: whether a run is one step, without a loop.
    """

    def __init__(self, tuning: Tuning, may_choose: bool, *, single: bool = False):
        self._tuning = tuning
        self._fewest_steps = 1 if single else tuning.fewest_steps
        self._turns = tuning.turns_of_single_steps if single else tuning.turns
        self._score: Callable[[list[float]], float] = statistics.median if single else min
        self._chosen = None if may_choose else DEFAULT
        self._seconds: dict[str, list[float]] = {DEFAULT: [], SINGLE_THREADED: []}
        self._compiled: set[str] = set()

    def piece(self, steps: int) -> int:
        """The number of steps to run at once, up to `steps`: all, once the choice is made."""
        if self._chosen is not None:
            return steps
        seconds = self._seconds[DEFAULT]
        size = int(self._tuning.short_piece / min(seconds)) if seconds else 2 * self._fewest_steps
        return min(steps, max(self._fewest_steps, size))

    def next(self, steps: int) -> str:
        """The executor for a run of `steps` steps."""
        if self._chosen is not None:
            return self._chosen
        default, single = (len(self._seconds[e]) for e in (DEFAULT, SINGLE_THREADED))
        turn = steps >= self._fewest_steps and default >= self._tuning.first_runs + single
        return SINGLE_THREADED if turn else DEFAULT

    def record(self, executor: str, steps: int, seconds: float) -> None:
        """Takes note of a run of `steps` steps that took `seconds`."""
        if self._chosen is not None:
            return
        if executor not in self._compiled:  # the first run traces and compiles
            self._compiled.add(executor)
            return
        if steps < self._fewest_steps:
            return
        tuning = self._tuning
        self._seconds[executor].append(seconds / steps)
        default, single = (self._seconds[e] for e in (DEFAULT, SINGLE_THREADED))
        if len(default) >= tuning.first_runs and min(default) > tuning.slow_step:
            self._chosen = DEFAULT
        elif len(single) >= self._turns:
            # The first runs, which nothing took turns with, would give the default more chances.
            turns = default[tuning.first_runs - 1 :]
            faster = self._score(single) < tuning.clearly_faster * self._score(turns)
            self._chosen = SINGLE_THREADED if faster else DEFAULT


class HostCallTuner:
    """Finds out whether host calls are quick enough to be a part of their steps.

    A queue costs each step a little, whatever the calls do. So the first calls are timed.

    Args:
      tuning: the numbers.
      capacity: the number of calls that may wait.
      may_choose: whether the single-threaded executor can make the calls.

    Attributes:
      quick: the answer; None before there is one.
      may_choose: see `Args`.
    """

    def __init__(self, tuning: Tuning, capacity: int, may_choose: bool):
        self.quick: bool | None = None
        self.may_choose = may_choose
        self._tuning = tuning
        self._capacity = capacity
        self._executors = ExecutorChoice(tuning, may_choose)
        self._batches = self._calls = 0
        self._seconds = 0.0

    def piece(self, steps: int) -> int:
        """The number of steps to run, up to `steps`, before their host calls are handed over."""
        return min(steps, self._capacity // 2)

    def fits(self, waiting: int, steps: int) -> bool:
        """Whether the calls of `steps` steps may wait beside those that wait already."""
        return waiting + steps <= self._capacity

    def next(self, calls: int) -> str:
        """The executor for a batch of so many calls: the default while they are on trial."""
        return self._executors.next(calls)

    def record(self, executor: str, calls: int, seconds: float, seconds_of_calls: float) -> None:
        """Takes note of a batch of calls.

        Args:
          executor: the executor that made the calls.
          calls: the number of calls.
          seconds: the time that the batch took.
          seconds_of_calls: the same without the time to call a function, which is longer than a
            quick host call.
        """
        if self.quick is not None:
            self._executors.record(executor, calls, seconds)
            return
        self._batches += 1
        if self._batches == 1:  # the first batch compiles
            return
        self._calls += calls
        self._seconds += seconds_of_calls
        if self._seconds > self._tuning.trial_calls * self._tuning.quick_call:
            self.quick = False  # whatever the rest of the trial would bring
        elif self._calls >= self._tuning.trial_calls:
            self.quick = True


class LoopTuner:
    """Cuts a loop of steps into calls.

    Args:
      tuning: the numbers.
      may_choose: whether the single-threaded executor can run the steps.
      host_calls: the tuner of the queue that the steps put their host calls in, if they do.
      whole: whether a loop is one call, on the default executor, whatever time it takes: several
        machines that run it together would cut it in different places.
      ops: operations of a step.
      replicas: the number of replicas of a step. A loop around several costs some times as much.
    """

    def __init__(
        self,
        tuning: Tuning,
        may_choose: bool,
        host_calls: HostCallTuner | None = None,
        *,
        whole: bool = False,
        ops: int = 0,
        replicas: int = 1,
    ):
        self._tuning = tuning
        self._whole = whole
        self._large = ops >= tuning.many_ops
        self._replicas = replicas
        self._first_call: float | None = None
        self._seconds = 0.0  # of all calls
        self._host_calls = host_calls
        self._seconds_per_step: float | None = None
        self._single_runs = 0
        self._choose(may_choose)

    def _choose(self, may_choose: bool) -> None:
        self._may_choose = may_choose
        self._executors = {
            single: ExecutorChoice(self._tuning, may_choose, single=single)
            for single in (False, True)
        }

    def take_calls_into_steps(self) -> None:
        """From now on the steps make their host calls themselves: they are other steps."""
        assert self._host_calls is not None
        self._choose(self._may_choose and self._host_calls.may_choose)
        self._host_calls = None

    def next(self, steps: int) -> Call:
        """The next call of a loop that has `steps` steps to make."""
        if self._whole:
            return Call(steps, DEFAULT, single=False, timed=False)
        # No executor is chosen for steps before they are what they will be.
        settled = self._host_calls is None or self._host_calls.quick is False
        if self._is_large:
            return Call(1, DEFAULT, single=True, timed=False)  # another executor would compile anew
        steps = self._piece(self._executors[False].piece(steps) if settled else steps)
        single = self._is_single(steps)
        steps = 1 if single else steps
        return Call(steps, self._executors[single].next(steps), single, timed=settled)

    def record_call(self, call: Call, steps: int, seconds: float) -> None:
        """Takes note of how long the call took that made so many steps."""
        if call.timed:
            self._executors[call.single].record(call.executor, steps, seconds)

    def record_piece(self, steps: int, seconds: float) -> None:
        """Takes note of how long steps took with all that belongs to a call."""
        self._seconds_per_step = seconds / max(1, steps)
        self._first_call = seconds if self._first_call is None else self._first_call
        self._seconds += seconds

    def _piece(self, steps: int) -> int:
        """The number of steps to run, up to `steps`, before Python looks for signals."""
        queued, tuning = self._host_calls, self._tuning
        if self._seconds_per_step is None:
            steps = min(steps, tuning.first_piece)
        else:
            seconds = tuning.piece if queued is None else tuning.short_piece
            steps = max(1, min(steps, int(seconds / self._seconds_per_step)))
        return steps if queued is None else queued.piece(steps)

    @property
    def _is_large(self) -> bool:
        """Whether a step is worth a call, by its size and by the time that steps took."""
        seconds, tuning = self._seconds_per_step, self._tuning
        if not self._large or seconds is None or self._first_call is None:
            return self._large
        is_small = seconds < tuning.small_step
        if self._replicas > 1 and not is_small:
            return True
        calls = 1 if is_small else tuning.first_calls
        return self._seconds <= (1 + calls) * self._first_call

    def _is_single(self, steps: int) -> bool:
        seconds = self._seconds_per_step
        if steps > 1:
            self._single_runs = 0
        elif seconds is not None and seconds < self._tuning.small_step:
            self._single_runs += 1
        return self._single_runs > self._tuning.single_runs


class RunTuner:
    """The number of steps of a run between two turns of the hooks."""

    def __init__(self) -> None:
        self._seconds_per_step: float | None = None

    def steps_within(self, seconds: float) -> int:
        """Steps that take so many seconds, as far as that is known."""
        if self._seconds_per_step is None:
            return 1
        if not self._seconds_per_step:
            return 2  # enough to take the time of
        return int(seconds / self._seconds_per_step)

    def record(self, steps: int, seconds: float) -> None:
        """Takes note of a run of `steps` steps that took `seconds`."""
        # The first run also traces and compiles: it says nothing about the speed of steps.
        self._seconds_per_step = 0.0 if self._seconds_per_step is None else seconds / steps


class PredictionTuner:
    """The number of batches that a call predicts: one at first, for a caller who wants no more.

    Args:
      tuning: the numbers.

    Attributes:
      batches: of the next call.
    """

    def __init__(self, tuning: Tuning):
        self.batches = 1
        self._tuning = tuning

    def record(self, seconds: float) -> None:
        """Takes note of how long a call took."""
        if seconds < self._tuning.quick_prediction:
            self.batches = min(2 * self.batches, self._tuning.most_batches)


class CollectTuner:
    """The executor of predictions, and whether several batches are predicted in one loop.

    Most predictions end before two executors have taken turns. So steps with quick batches go to
    one thread, where small ops take half of the time; slow steps stay where they began.

    Args:
      tuning: the numbers.
      may_choose: whether the single-threaded executor can run the steps.

    Attributes:
      executor: of the next call.
      loops: whether the next call has a loop.
      clock: tells the seconds since some moment.
    """

    def __init__(self, tuning: Tuning, may_choose: bool):
        self.clock = tuning.clock
        self.executor = DEFAULT
        self.loops = False
        self._tuning = tuning
        self._may_choose = may_choose
        self._traced = False
        self._batches, self._seconds = 0, 0.0

    def record(self, batches: int, seconds: float) -> None:
        """Takes note of how long a call took that predicted so many batches."""
        if not self._traced:  # the first call traces and compiles
            self._traced = True
            return
        quick = seconds <= self._tuning.slow_step * max(1, batches)
        if self.loops:
            if not quick:
                self.executor = DEFAULT
            return
        self._batches += batches
        self._seconds += seconds
        quick = self._seconds <= self._tuning.slow_step * self._batches
        if quick and self._batches == self._tuning.first_runs and self._may_choose:
            self.executor, self._traced = SINGLE_THREADED, False
        elif quick and self._batches >= self._tuning.single_batches:
            self.loops, self._traced = True, False
