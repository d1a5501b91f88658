"""Elements of the input for JAX's devices: arrays over several steps and all replicas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.inputs.deployed_input import flat_parts
from tpu_estimator_compat.engine.jax.host_part import JaxHostStage
from tpu_estimator_compat.engine.jax.steps import NOTHING, Chunk
from tpu_estimator_compat.engine.jax.topology import JaxTopology


class Elements:
    """Reads elements, and stacks elements of several steps and replicas into arrays.

    An element stacks the replicas' batches if `stacked`, as `DeployedInput` does, or concatenates
    them, as Keras does.
    """

    def __init__(self, topology: JaxTopology, *, stacked: bool):
        self._replicas = topology.replicas_per_element
        self._all_replicas = topology.num_replicas
        self._stacked = stacked and self._replicas > 1
        self._concatenated = not stacked
        self._error: tf.errors.OpError | None = None

    def next(self, iterator: Iterator, steps: int, stage: JaxHostStage | None) -> Chunk:
        """The next `steps` elements (one, with a host stage); fewer before the end or an error."""
        if stage is not None:
            parts = self.parts_for_stage(iterator)
            return NOTHING if parts is None else staged(parts, stage)
        elements: list[list[np.ndarray]] = []
        self.read(iterator, steps, elements)
        return self.chunk(elements) if elements else NOTHING

    def read(self, iterator: Iterator, steps: int, elements: list[list[np.ndarray]]) -> None:
        """Appends to `elements` until it has `steps` of them, or the data ends.

        An error of the input is raised once `elements` is empty, after the steps before it.
        """
        if self._error is not None and not elements:
            error, self._error = self._error, None
            raise error
        try:
            while self._error is None and len(elements) < steps:
                if (parts := flat_parts(iterator)) is None:
                    return
                elements.append(parts)
        except tf.errors.OpError as error:
            if not elements:
                raise
            self._error = error

    def parts_for_stage(self, iterator: Iterator) -> list[list[np.ndarray]] | None:
        """The flat parts of every replica's element; None at the end of the data."""
        count = 1 if self._concatenated else self._replicas
        found = itertools.islice(iterator, count)
        elements = [[t.numpy() for t in tf.nest.flatten(e, expand_composites=True)] for e in found]
        if len(elements) < count:
            return None
        if count < self._replicas:
            [whole] = elements
            elements = list(zip(*(np.split(part, self._replicas) for part in whole), strict=True))
        return elements

    def chunk(self, elements: Sequence[Sequence[np.ndarray]]) -> Chunk:
        return Chunk(len(elements), [self._joined(p) for p in zip(*elements, strict=True)])

    def chunk_of(self, element: Any, stage: JaxHostStage | None) -> Chunk:
        """The chunk of one element of all replicas, which the caller has read."""
        if stage is None:
            return self.chunk([[t.numpy() for t in tf.nest.flatten(element)]])
        parts = self.parts_for_stage(iter([element]))
        assert parts is not None
        return staged(parts, stage)

    def of_all_replicas(self, value: np.ndarray) -> np.ndarray:
        """The same value for all replicas in one step: an array [1, replicas * n, ...]."""
        rows = value if value.ndim else value[None]
        return np.concatenate([rows] * self._all_replicas)[None]

    def _joined(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Joins the same part of several steps' elements to [steps, replicas * batch, ...]."""
        array = parts[0][None] if len(parts) == 1 else np.stack(parts)
        if not self._stacked:  # [steps, replicas * batch, ...]
            return array[:, None] if array.ndim == 1 else array
        # [steps, replicas, batch, ...]
        return array if array.ndim == 2 else array.reshape(len(parts), -1, *array.shape[3:])


def staged(elements: list[list[np.ndarray]], stage: JaxHostStage) -> Chunk:
    """The chunk of one step: `elements` of every replica after the host stage."""
    fed, results = stage(elements)
    # [replicas, batch, ...]
    feeds = [a[None] if a.ndim == 1 else a.reshape(1, -1, *a.shape[2:]) for a in fed]
    return Chunk(1, feeds, results)
