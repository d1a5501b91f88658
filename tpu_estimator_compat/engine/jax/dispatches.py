"""The input of some steps on JAX's devices, and the results of the dispatch that makes them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key
from tpu_estimator_compat.engine.jax.step import JaxStep, Values
from tpu_estimator_compat.engine.jax.step_function import Dispatched
from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Input of some steps.

    Attributes:
      steps: the number of steps.
      feeds: per feed an array [steps, replicas * share, ...].
      of_stage: of one step, the results of its host stage over all replicas.
    """

    steps: int
    feeds: list[np.ndarray]
    of_stage: dict[Key, np.ndarray] = dataclasses.field(default_factory=dict)


NOTHING = Chunk(0, [])
"""The input of no steps."""


class Done:
    """A dispatch: steps that were started, and are perhaps not finished."""

    def __init__(self, step: JaxStep, chunk: Chunk, dispatched: Dispatched):
        self.step = step
        self._chunk = chunk
        self._dispatched = dispatched

    @functools.cached_property
    def made(self) -> int:
        """The number of steps made; waits for them."""
        return 1 if self._chunk.steps == 1 else int(np.asarray(self._dispatched.steps))

    def values(self, index: int) -> Values:
        """The values of a step; waits for them."""
        feeds = [array[index] for array in self._chunk.feeds]
        return {**self.step.values(self._dispatched, index, feeds), **self._chunk.of_stage}

    def losses(self) -> list[np.generic]:
        """The losses of all steps; waits for them."""
        return [self.step.loss(self._dispatched, index) for index in range(self.made)]


class LossSum:
    """Counts the steps of a run, sums up their losses, and stops at a NaN.

    Args:
      stop_on_nan: whether no step is made after one whose loss is NaN.

    Attributes:
      steps: the number of steps made.
      stopped: whether the last loss ended the run.
    """

    def __init__(self, *, stop_on_nan: bool):
        self._stop_on_nan = stop_on_nan
        self.steps = 0
        self.stopped = False
        self._sum = 0.0
        self._loss: np.generic | None = None

    def add(self, done: Done) -> None:
        """Counts the steps of a dispatch; waits for them."""
        for self._loss in done.losses():
            self.steps, self._sum = self.steps + 1, self._sum + float(self._loss)
        self.stopped = self._stop_on_nan and self.steps > 0 and ends_training(self._loss)

    def result(self, exhausted: bool, counter: np.ndarray | None) -> LoopResult:
        """The result of the run; for the arguments see `LoopResult`."""
        loss = tf.constant(np.nan if self._loss is None else self._loss)
        return LoopResult(self.steps, loss, self._sum, exhausted, counter, None, self.stopped)
