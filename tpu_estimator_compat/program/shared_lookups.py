"""Lookups of a step on several machines: each machine looks up the rows that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.graph_ops import Key, key
from tpu_estimator_compat.program.replica_program import HandleOf, ReplicaProgram
from tpu_estimator_compat.program.step_plan import StepPlan
from tpu_estimator_compat.runtime.workers import Workers


class SharedLookups:
    """The partial lookups of a plan that one step needs.

    Args:
      plan: its lookups are those of several machines.
      feeds: of its `replica_feeds` those that the replicas' share takes and that are partial.
      group: the machines.

    Attributes:
      handles: handle ops of the variables that it reads, of which this machine has some rows.
      wanted: results of the plan's lookups that it takes of all replicas.
    """

    def __init__(self, plan: StepPlan, feeds: Sequence[tf.Tensor], group: Workers):
        self._feeds = list(feeds)
        self._group = group
        partial = [plan.lookups.tensors[key(t)][1] for t in feeds]
        made = plan.host_placeholders
        ops = graph_ops.ancestors([t.op for t in partial], set(made))
        taken = {key(t) for op in ops for t in op.inputs}
        pairs = [pair for k, pair in made.items() if k in taken]
        self.wanted = [tensor for _, tensor in pairs]
        self._program = ReplicaProgram(plan.graph, [there for there, _ in pairs], partial)
        self.handles = self._program.handles

    @property
    def exchanges(self) -> set[str]:
        """Names of what machines exchange."""
        return {f"looked_up/{t.name}" for t in self._feeds}

    def __call__(
        self, results: Mapping[Key, tf.Tensor], replicas: int, handle_of: HandleOf
    ) -> list[dict[Key, tf.Tensor]]:
        """Builds the lookups of one step into the function under construction.

        Args:
          results: of the plan's lookups, over all replicas of all machines.
          replicas: of this machine.
          handle_of: gives the handle of a variable of the host.

        Returns:
          For each replica of this machine, what it is fed, by `key()` of the feed.
        """
        found = self._program([results[key(t)] for t in self.wanted], handle_of)
        name = " ".join(sorted(self.exchanges))
        wholes = self._group.sum_of_machines(found, name)
        parts = [tf.split(whole, self._group.replicas) for whole in wholes]
        first = self._group.index * replicas
        return [
            {key(t): part[first + i] for t, part in zip(self._feeds, parts, strict=True)}
            for i in range(replicas)
        ]
