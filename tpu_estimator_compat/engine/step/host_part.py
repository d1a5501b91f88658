"""The host part of a step, which runs once, after the replicas."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.state.variables import VariableStore, components
from tpu_estimator_compat.engine.step.cut import Part
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


class HostPart:
    """The host part: metrics, and fetches that no replica computes."""

    def __init__(self, graph: tf.Graph, part: Part, store: VariableStore):
        self.program = ReplicaProgram(graph, part.feeds, part.fetches, part.targets)
        self._store = store

    @functools.cached_property
    def cache_key(self) -> Hashable | None:
        """The key that host parts with the same computation share; None where none shares it."""
        return self.program.signature()

    def __call__(
        self, given: Mapping[Key, tf.Tensor], after: Sequence[tf.Operation]
    ) -> dict[Key, tf.Tensor]:
        """Builds the part from the values of its feeds; returns the values of its fetches.

        All of it runs after the operations `after`. What it writes, all replicas have.
        """
        values = [given[key(t)] for t in self.program.feeds]
        found = self.program(values, self._store.host_handle, after=after)
        written = [op.name for op in self.program.written_handles() if op.name in self._store]
        for first, *others in (components(self._store[name]) for name in written):
            for other in others:
                other.assign(first.read_value())
        return dict(zip(map(key, self.program.fetches), found, strict=True))
