"""Chooses TensorFlow's executor for a loop of steps by timing both on the steps themselves.

The default executor hands every op to a pool of threads: right for large ops, and most of the cost
of a step made of small ones. The single-threaded executor runs them one after the other. Both run
the same kernels in an order that the graph allows, so the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

DEFAULT = ""
SINGLE_THREADED = "SINGLE_THREADED_EXECUTOR"

_FIRST_RUNS = 3  # of the default alone: steps that turn out to be slow are spared a second compile
_TURNS = 5  # of each, one after the other
_FEWEST_STEPS = 8  # of shorter runs Python takes the larger part of the time
_PIECE = 0.05  # seconds that a run takes while both are being timed
_SLOW_STEP = 2e-3  # seconds; such steps are busy with ops, not with scheduling them
# Steps of small ops took 0.6 times as long on one thread; steps that keep two threads busy took 1.3
# times as long. What lies in between may be the machine's other work.
_CLEARLY_FASTER = 0.9


class ExecutorChoice:
    """The executor of the next run, until one is found to be faster.

    Other work on the machine makes runs longer, never shorter, and comes and goes. So the two take
    turns, and the best run of each counts.

    Args:
      may_choose: whether the single-threaded executor can run the steps: one device, and no
        functions (branches, loops) in them.
      fewest_steps: runs of fewer steps say nothing.
      turns: how many runs of each are timed.
      score: what counts of the times of one.
    """

    def __init__(
        self,
        may_choose: bool,
        *,
        fewest_steps: int = _FEWEST_STEPS,
        turns: int = _TURNS,
        score: Callable[[Sequence[float]], float] = min,
    ):
        self._score = score
        self.may_choose = may_choose
        self._fewest_steps, self._turns = fewest_steps, turns
        self._chosen = None if may_choose else DEFAULT
        self._seconds: dict[str, list[float]] = {DEFAULT: [], SINGLE_THREADED: []}
        self._compiled: set[str] = set()

    def keep_default(self) -> None:
        """From now on the default one: the single-threaded executor cannot run the steps."""
        self.may_choose, self._chosen = False, DEFAULT

    def piece(self, steps: int) -> int:
        """How many of `steps` steps to run at once: all, once the choice is made."""
        if self._chosen is not None:
            return steps
        seconds = self._seconds[DEFAULT]
        size = int(_PIECE / min(seconds)) if seconds else 2 * self._fewest_steps
        return min(steps, max(self._fewest_steps, size))

    def next(self, steps: int) -> str:
        """The executor for a run of `steps` steps."""
        if self._chosen is not None:
            return self._chosen
        default, single = (len(self._seconds[e]) for e in (DEFAULT, SINGLE_THREADED))
        turn = steps >= self._fewest_steps and default >= _FIRST_RUNS + single
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
        self._seconds[executor].append(seconds / steps)
        default, single = (self._seconds[e] for e in (DEFAULT, SINGLE_THREADED))
        if len(default) >= _FIRST_RUNS and min(default) > _SLOW_STEP:
            self._chosen = DEFAULT
        elif len(single) >= self._turns:
            # The first runs, which nothing took turns with, would give the default more chances.
            turns = default[_FIRST_RUNS - 1 :]
            faster = self._score(single) < _CLEARLY_FASTER * self._score(turns)
            self._chosen = SINGLE_THREADED if faster else DEFAULT
