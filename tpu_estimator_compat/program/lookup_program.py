"""The host's lookups of each replica's element, before the replicas' share of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_utils

from tpu_estimator_compat.program import graph_ops
from tpu_estimator_compat.program.graph_ops import key
from tpu_estimator_compat.program.replica_program import HandleOf, ReplicaProgram
from tpu_estimator_compat.program.step_plan import StepPlan


class LookupProgram:
    """The lookups of a plan that one step needs.

    Args:
      plan: a plan with lookups.
      feeds: the `replica_feeds` that the replicas' share takes; none is partial.
      results: the results that the host's share takes.

    Attributes:
      handles: handle ops of the variables that it reads, which are the host's.
    """

    def __init__(self, plan: StepPlan, feeds: Sequence[tf.Tensor], results: Sequence[tf.Tensor]):
        self._feeds, self._results = list(feeds), list(results)
        tensors = plan.lookups.tensors
        self._looked_up = {key(t): tensors[key(t)][1] for t in feeds if key(t) in tensors}
        fetches = {key(t): t for t in [*self._looked_up.values(), *results]}
        fed = {key(t) for t in plan.feeds}
        self._program = ReplicaProgram(
            plan.graph, plan.feeds, [t for k, t in fetches.items() if k not in fed]
        )
        self.handles = self._program.handles

    def __call__(
        self, values: Sequence[tf.Tensor], handle_of: HandleOf
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Builds the lookups of one replica into the function under construction.

        Args:
          values: its element: one tensor for each of the plan's feeds.
          handle_of: gives the handle of a variable of the host.

        Returns:
          What the replica is fed, and the results.
        """
        known = dict(zip(map(key, self._program.feeds), values, strict=True))
        found = self._program(values, handle_of)
        known.update(zip(map(key, self._program.fetches), found, strict=True))
        fed = [known[key(self._looked_up.get(key(t), t))] for t in self._feeds]
        return fed, [known[key(t)] for t in self._results]


def needed_feeds(
    plan: StepPlan, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
) -> list[tf.Tensor]:
    """The feeds of a plan's `replica_feeds` that a share of the replicas takes.

    Where the host looks things up, it need not be sent what only the lookups take: ids are of any
    number, which a device that wants static shapes cannot take at all.
    """
    if not plan.lookups.tensors:
        return plan.replica_feeds
    stops = {key(t) for t in plan.replica_feeds}
    ops = graph_ops.ancestors([*(t.op for t in fetches if key(t) not in stops), *targets], stops)
    taken = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
    taken |= {(c.name, 0) for op in ops for c in op.control_inputs}
    return [t for t in plan.replica_feeds if key(t) in taken]


def of_replica(data: Any, replica: int) -> Any:
    """One replica's part of what a strategy deals out; outside of `strategy.run`."""
    return distribute_utils.select_replica(replica, data)


def dealt_out(of_replicas: Sequence[list[tf.Tensor]]) -> Any:
    """Tensors of each replica as `strategy.run` takes them."""
    return of_replicas[0] if len(of_replicas) == 1 else distribute_utils.regroup(of_replicas)
