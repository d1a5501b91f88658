"""The input of some steps on JAX's devices, and the results of the dispatch that makes them."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tpu_estimator_compat.graph.graph_ops import Key
from tpu_estimator_compat.jax_runtime.step import JaxStep, Values
from tpu_estimator_compat.jax_runtime.step_function import Dispatched


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
    """Steps that were started, perhaps not finished."""

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
