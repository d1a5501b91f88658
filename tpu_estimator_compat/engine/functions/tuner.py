"""The tuner: decides steps, form and executor of a loop's next call.

The rule: a call makes as many steps as fit in a second, in a `tf.while_loop` once tracing that is
worth its time, on the executor that was faster when both took turns.

Each loop (of training, evaluation, prediction, host calls) asks its tuner before a call, and
records the steps made and their time afterwards. The decisions change no results: both executors
run the same kernels in an order that the graph allows.
"""

from __future__ import annotations

import collections
import dataclasses
import math

from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.functions.tuning import DEFAULT, SINGLE_THREADED, Tuning

_SHORTEST = 1e-9  # seconds; clocks are coarse


@dataclasses.dataclass(frozen=True)
class Call:
    """The next call.

    Attributes:
      steps: the number of steps; 1 without a loop.
      executor: TensorFlow's name of the executor.
      looped: whether to call the function with a loop, which makes any number of steps.
    """

    steps: int
    executor: str = DEFAULT
    looped: bool = True


class Pace:
    """The number of steps that fit in a time, from the time of the last run.

    Args:
      *first: the numbers of steps of the first runs. Of these, only the last one's time counts:
        earlier ones trace and compile.
    """

    def __init__(self, *first: int):
        self.seconds_per_step = math.inf
        self._first = first

    def steps_within(self, seconds: float) -> int:
        """The number of steps; 0 where a step takes longer."""
        return self._first[0] if self._first else int(seconds / self.seconds_per_step)

    def record(self, steps: int, seconds: float) -> None:
        """Records a run of one step or more."""
        self._first = self._first[1:]
        self.seconds_per_step = max(seconds, _SHORTEST) / steps


class Tuner:
    """Decides the calls of one loop.

    Size: a call takes a second; a twentieth while executors are tried, or something waits for it.

    Form: without `patience`, a first call of one step has no loop, since a loop doubles tracing.
    After a first call of more steps, the function without a loop is traced once consecutive loops
    of one small step took as long as tracing takes. With patience, the first steps have a call
    each. The loop is traced once the later calls took `patience` times (for small steps, at most
    once) as long as the first call, which traces.

    Executor: the single-threaded one where it is clearly faster; see `_Executors`.

    Args:
      may_choose: whether the single-threaded executor can run the steps: one device, and no
        functions (branches, loops) in them.
      patience: see `Tuning.patience`.
    """

    def __init__(self, may_choose: bool, patience: float = 0.0):
        self._tuning = tuning.NUMBERS
        self._patience = patience
        self._pace = Pace(self._tuning.few_steps)
        self._executors = _Executors(may_choose)
        self._has_single = False  # whether the function without a loop is traced
        self._first_call = math.inf  # seconds
        self._later_calls = self._loops_of_one = 0.0  # seconds

    def next(self, steps: int, *, waited_for: bool = False, trial: bool = True) -> Call:
        """The next call of a loop that has `steps` steps to make, one or more.

        Args:
          waited_for: whether something besides the caller waits for the call's end.
          trial: False for steps that will be traced anew: the default executor runs them.
        """
        looped = self._loop_pays
        if looped:
            short = waited_for or (trial and self._executors.undecided)
            seconds = self._tuning.short_piece if short else self._tuning.piece
            steps = max(1, min(steps, self._pace.steps_within(seconds)))
            looped = steps > 1 or not (self._has_single or self._is_first)
        executor = self._executors.next(looped) if trial else DEFAULT
        return Call(steps if looped else 1, executor, looped)

    def record(self, call: Call, steps: int, seconds: float) -> None:
        if not steps:
            return
        self._pace.record(steps, seconds)
        self._executors.record(call, steps, seconds)
        self._has_single |= not call.looped
        if self._is_first:
            self._first_call = max(seconds, self._tuning.tracing)
        else:
            self._later_calls += seconds
        if call.steps > 1:
            self._loops_of_one = 0.0
        elif self._steps_are_small:
            self._loops_of_one += seconds
            self._has_single |= self._loops_of_one > self._tuning.tracing

    @property
    def _is_first(self) -> bool:
        """Whether no call has been recorded. The first one traces."""
        return self._first_call == math.inf

    @property
    def _steps_are_small(self) -> bool:
        return self._pace.seconds_per_step < self._tuning.small_step

    @property
    def _loop_pays(self) -> bool:
        if not self._patience:
            return True
        patience = min(1.0, self._patience) if self._steps_are_small else self._patience
        return self._later_calls > patience * self._first_call


class _Executors:
    """Decides the executor of the next call.

    The default executor hands every op to a pool of threads, which suits large ops but dominates
    the time of a step of small ones. The single-threaded executor runs ops one after the other. The
    two take turns, except where steps prove not to be small, which saves a second compilation. The
    best run of each counts, since other work on the machine only makes runs longer.

    Attributes:
      undecided: whether later calls may go to another executor.
    """

    def __init__(self, may_choose: bool):
        self._tuning = tuning.NUMBERS
        self._chosen = None if may_choose else DEFAULT
        self._runs: dict[tuple[bool, str], _Runs] = collections.defaultdict(_Runs)

    @property
    def undecided(self) -> bool:
        return self._chosen is None

    def next(self, looped: bool) -> str:
        if self._chosen is not None:
            return self._chosen
        default, single = (len(self._runs[looped, e].times) for e in (DEFAULT, SINGLE_THREADED))
        return SINGLE_THREADED if default >= self._tuning.turns + single else DEFAULT

    def record(self, call: Call, steps: int, seconds: float) -> None:
        if not self.undecided or call.executor != self.next(call.looped):
            return
        numbers = self._tuning
        self._runs[call.looped, call.executor].add(steps, seconds, numbers)
        default, single = (self._runs[call.looped, e].times for e in (DEFAULT, SINGLE_THREADED))
        if len(default) >= numbers.turns and min(default) > numbers.small_step:
            self._chosen = DEFAULT
        elif len(single) >= numbers.turns:
            # Leaves out the default's runs before the turns: both have as many.
            best = min(default[numbers.turns - 1 :])
            faster = min(single) < numbers.clearly_faster * best
            self._chosen = SINGLE_THREADED if faster else DEFAULT


class _Runs:
    """The runs of one function, a few steps each, in one or more calls.

    `times` has the seconds per step of each.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self._compiled = False
        self._steps, self._seconds = 0, 0.0

    def add(self, steps: int, seconds: float, numbers: Tuning) -> None:
        if not self._compiled:  # the first call traces and compiles
            self._compiled = True
            return
        self._steps += steps
        self._seconds += seconds
        few = numbers.few_steps
        if self._steps >= few or self._seconds >= few * numbers.small_step:
            self.times.append(self._seconds / self._steps)
            self._steps, self._seconds = 0, 0.0
