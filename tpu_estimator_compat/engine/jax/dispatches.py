"""The input of some steps on JAX's devices, and the results of the dispatch that runs them."""

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
    """Input of some steps: per feed an array [steps, replicas * batch, ...].

    `of_stage` has the host stage's results over all replicas; with a stage, `steps` is 1.
    """

    steps: int
    feeds: list[np.ndarray]
    of_stage: dict[Key, np.ndarray] = dataclasses.field(default_factory=dict)


NOTHING = Chunk(0, [])


class StartedSteps:
    """The steps of a dispatch, which may still run; the methods wait for them."""

    def __init__(self, step: JaxStep, chunk: Chunk, dispatched: Dispatched):
        self.step = step
        self._chunk = chunk
        self._dispatched = dispatched

    @functools.cached_property
    def made(self) -> int:
        return 1 if self._chunk.steps == 1 else int(np.asarray(self._dispatched.steps))

    def values(self, index: int) -> Values:
        feeds = [array[index] for array in self._chunk.feeds]
        return {**self.step.values(self._dispatched, index, feeds), **self._chunk.of_stage}

    def losses(self) -> list[np.generic]:
        return [self.step.loss(self._dispatched, index) for index in range(self.made)]


class LossSum:
    """Counts the steps of a run and adds up their losses; `stopped`: a NaN has ended the run."""

    def __init__(self, *, trains: bool):
        self._trains = trains
        self.steps = 0
        self.stopped = False
        self._sum = 0.0
        self._loss: np.generic | None = None

    def add(self, started: StartedSteps) -> None:
        for self._loss in started.losses():
            self.steps, self._sum = self.steps + 1, self._sum + float(self._loss)
        self.stopped = self._trains and self.steps > 0 and ends_training(self._loss)

    def result(self, exhausted: bool, counter: np.ndarray | None) -> LoopResult:
        loss = tf.constant(np.nan if self._loss is None else self._loss)
        return LoopResult(self.steps, loss, self._sum, exhausted, counter, None, self.stopped)
