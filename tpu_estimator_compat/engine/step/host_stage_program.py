"""Builds the host stage of a step: for each replica's element, and over several machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.host_stage import HostStage
from tpu_estimator_compat.engine.step.joining import exchange_name
from tpu_estimator_compat.engine.step.plan import StepPlan
from tpu_estimator_compat.engine.step.replica_program import HandleOf, ReplicaProgram
from tpu_estimator_compat.tf_internals import distribute_utils


class HostStageProgram:
    """The host stage of a plan that has one, for all replicas of this machine.

    Args:
      feeds: the `replica_feeds` that the device part takes.
      results: the stage's results that the host part takes.
      group: the machines that train together; None for one machine.

    Attributes:
      handles: handle ops of the host's variables that it reads.
      results: `results`, and the stage's results from which machines compute partial tensors.
    """

    def __init__(
        self,
        plan: StepPlan,
        feeds: Sequence[tf.Tensor],
        results: Sequence[tf.Tensor],
        group: Workers | None,
    ):
        stage = _stage(plan)
        self._feeds, self._group = list(feeds), group
        partial = [t for t in feeds if key(t) in stage.partial]
        self._shared = _OfMachines(plan, partial, group) if partial and group else None
        wanted = [t for t in self._shared.wanted if stage.gives(t)] if self._shared else []
        self.results = graph_ops.distinct([*results, *wanted])
        own = [t for t in feeds if key(t) not in stage.partial]
        self._own = OfElement(plan, own, self.results)
        self.handles = [*self._own.handles, *(self._shared.handles if self._shared else [])]

    @property
    def exchanges(self) -> set[str]:
        shared = self._shared.exchanges if self._shared else set()
        return shared | set(map(exchange_name, self.results))

    def of_one(self, values: list[tf.Tensor], handle_of: HandleOf) -> list[tf.Tensor]:
        """Builds the stage of one replica from its flat element; returns the replica's input."""
        return self._own(values, handle_of)[0]

    def __call__(
        self, elements: Sequence[list[tf.Tensor]], handle_of: HandleOf
    ) -> tuple[Any, dict[Key, tf.Tensor]]:
        """Builds the stage of one step from the flat elements of this machine's replicas.

        Returns the replicas' input, as `strategy.run` takes it, and the results over all replicas.
        """
        found = [self._own(values, handle_of) for values in elements]
        parts_of = zip(*(results for _, results in found), strict=True)
        joined = [parts[0] if len(parts) == 1 else tf.concat(parts, axis=0) for parts in parts_of]
        if self._group:
            joined = [
                self._group.concatenate_over_workers(value, exchange_name(tensor))
                for tensor, value in zip(self.results, joined, strict=True)
            ]
        of_all = dict(zip(map(key, self.results), joined, strict=True))
        fed = [of_one for of_one, _ in found]
        if self._shared:
            shared = self._shared(of_all, len(elements), handle_of)
            fed = [self._in_order(*each) for each in zip(fed, shared, strict=True)]
        return fed[0] if len(fed) == 1 else distribute_utils.regroup(fed), of_all

    def _in_order(self, own: list[tf.Tensor], shared: dict[Key, tf.Tensor]) -> list[tf.Tensor]:
        """Merges a replica's `own` and `shared` input, in the order of the feeds."""
        rest = iter(own)
        return [shared[key(t)] if key(t) in shared else next(rest) for t in self._feeds]


class OfElement:
    """The host stage of one replica's element, without partial tensors."""

    def __init__(self, plan: StepPlan, feeds: Sequence[tf.Tensor], results: Sequence[tf.Tensor]):
        self._feeds, self._results = list(feeds), list(results)
        tensors = _stage(plan).tensors
        self._computed = {key(t): tensors[key(t)][1] for t in feeds if key(t) in tensors}
        fetches = {key(t): t for t in [*self._computed.values(), *results]}
        fed = {key(t) for t in plan.feeds}
        self._program = ReplicaProgram(
            plan.graph, plan.feeds, [t for k, t in fetches.items() if k not in fed]
        )
        self.handles = self._program.handles

    def __call__(
        self, values: Sequence[tf.Tensor], handle_of: HandleOf
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Builds the stage from one tensor for each of the plan's feeds.

        Returns the replica's input, and the results that the host part takes.
        """
        known = dict(zip(map(key, self._program.feeds), values, strict=True))
        found = self._program(values, handle_of)
        known.update(zip(map(key, self._program.fetches), found, strict=True))
        fed = [known[key(self._computed.get(key(t), t))] for t in self._feeds]
        return fed, [known[key(t)] for t in self._results]


class _OfMachines:
    """The partial tensors of a host stage, which each machine computes from its own rows.

    `wanted` are the results over all replicas that the computation takes.
    """

    def __init__(self, plan: StepPlan, feeds: Sequence[tf.Tensor], group: Workers):
        self._feeds, self._group = list(feeds), group
        partial = [_stage(plan).tensors[key(t)][1] for t in feeds]
        made = plan.host_placeholders
        ops = graph_ops.ancestors([t.op for t in partial], set(made))
        taken = {key(t) for op in ops for t in op.inputs}
        pairs = [pair for k, pair in made.items() if k in taken]
        self.wanted = [tensor for _, tensor in pairs]
        self._program = ReplicaProgram(plan.graph, [there for there, _ in pairs], partial)
        self.handles = self._program.handles

    @property
    def exchanges(self) -> set[str]:
        return {f"host_stage/{t.name}" for t in self._feeds}

    def __call__(
        self, results: Mapping[Key, tf.Tensor], replicas: int, handle_of: HandleOf
    ) -> list[dict[Key, tf.Tensor]]:
        """Builds the partial tensors of one step from the results over all replicas.

        Returns, for each replica of this machine, its input by `key()` of the feed.
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


def _stage(plan: StepPlan) -> HostStage:
    assert plan.host_stage is not None
    return plan.host_stage
