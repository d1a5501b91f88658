"""Cuts a step into parts: the device part, the host part, host calls, and transfers between them.

A fetch or target belongs to the host part if it depends on a tensor concatenated over replicas
(metrics, host calls, predictions), to the device part if it depends on the step's input, and to the
host part otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, simplify
from tpu_estimator_compat.engine.graph.graph_ops import Key, distinct, key
from tpu_estimator_compat.engine.step.plan import StepPlan


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a step: takes `feeds`, returns `fetches`, runs `targets` for their effect."""

    feeds: list[tf.Tensor]
    fetches: list[tf.Tensor]
    targets: list[tf.Operation]

    @property
    def is_empty(self) -> bool:
        return not self.fetches and not self.targets

    def without(self, names: Collection[str]) -> Part:
        """The part without targets of these names; its feeds and fetches stay."""
        kept = [op for op in self.targets if op.name not in names]
        return dataclasses.replace(self, targets=kept)


@dataclasses.dataclass(frozen=True)
class Transfers:
    """The tensors that the host takes from the replicas, or from the host stage.

    `pairs` has, by `key()`, a placeholder of the host part, and the replicas' tensor whose
    concatenated values it stands for.
    """

    pairs: Mapping[Key, tuple[tf.Tensor, tf.Tensor]]
    from_replicas: list[tf.Tensor]
    from_stage: list[tf.Tensor]


@dataclasses.dataclass(frozen=True)
class StepParts:
    """The parts of a step.

    Attributes:
      own: the plan's fetches that replicas compute.
      device: the part of every replica. Its feeds are a subset of the plan's `replica_feeds`, then
        `fed`; its fetches are `own`, then `transfers.from_replicas`.
      host: the part that runs once, after the replicas: metrics, fetches that no replica computes.
      host_calls: the host calls that are not in `host`.
    """

    plan: StepPlan
    fed: list[tf.Tensor]
    own: list[tf.Tensor]
    device: Part
    host: Part
    host_calls: Part
    transfers: Transfers

    def without_host_calls(self) -> StepParts:
        """The parts for a machine that makes no host calls; its transfers stay the chief's."""
        names = self.plan.host_calls
        host, calls = self.host.without(names), self.host_calls.without(names)
        return dataclasses.replace(self, host=host, host_calls=calls)


def cut(
    plan: StepPlan,
    fed: Sequence[tf.Tensor] = (),
    *,
    one_replica: bool = False,
    one_program: bool = False,
    apart: frozenset[str] = frozenset(),
) -> StepParts:
    """Cuts a step into its parts.

    Args:
      fed: tensors whose values the caller gives.
      one_replica: whether a sole replica runs: nothing is concatenated, and scalars stay scalars.
      one_program: whether one program on one device runs both the device part and the host part.
      apart: names of host calls that go to `StepParts.host_calls`, not to the host part.
    """
    placeholders = dict(plan.host_placeholders)
    if one_replica:
        taken = simplify.sole_elements(plan.host_placeholders.values())
        placeholders |= {key(element): (element, scalar) for element, scalar in taken}
    given = {k: placeholder for k, (placeholder, _) in placeholders.items()}
    given |= {key(t): t for t in fed}
    on_host = [op for op in plan.targets if _is_of_host(plan, op, one_program)]
    fetches = [t for t in plan.fetches if _is_of_host(plan, t.op, one_program)]
    host = _host_part(given, fetches, [op for op in on_host if op.name not in apart])
    calls = _host_part(given, [], [op for op in on_host if op.name in apart])
    transfers = _transfers(plan, placeholders, [*host.feeds, *calls.feeds])
    not_on_replicas = {*on_host, *(t.op for t in fetches)}
    own = distinct(t for t in plan.fetches if t.op not in not_on_replicas)
    targets = [op for op in plan.targets if op not in not_on_replicas]
    device = device_part(plan, fed, [*own, *transfers.from_replicas], targets)
    return StepParts(plan, list(fed), own, device, host, calls, transfers)


def device_part(
    plan: StepPlan,
    fed: Sequence[tf.Tensor],
    fetches: Sequence[tf.Tensor],
    targets: Sequence[tf.Operation],
) -> Part:
    """The part of every replica that gives `fetches` and runs `targets`."""
    fetches = distinct(fetches)
    feeds = _needed_feeds(plan, fetches, targets)
    return Part([*feeds, *fed], fetches, list(targets))


def _transfers(
    plan: StepPlan,
    placeholders: Mapping[Key, tuple[tf.Tensor, tf.Tensor]],
    feeds: Sequence[tf.Tensor],
) -> Transfers:
    used = set(map(key, feeds))
    pairs = {k: pair for k, pair in placeholders.items() if k in used}
    sent = distinct(t for _, t in pairs.values())
    return Transfers(
        pairs,
        from_replicas=[t for t in sent if not plan.is_of_stage(t)],
        from_stage=[t for t in sent if plan.is_of_stage(t)],
    )


def _needed_feeds(
    plan: StepPlan, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
) -> list[tf.Tensor]:
    """The tensors of a plan's `replica_feeds` that a device part takes.

    Others are for the host stage alone, such as ids: their number varies, and some devices take
    only static shapes.
    """
    if plan.host_stage is None:
        return plan.replica_feeds
    stops = {key(t) for t in plan.replica_feeds}
    ops = graph_ops.ancestors([*(t.op for t in fetches if key(t) not in stops), *targets], stops)
    taken = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
    taken |= {(c.name, 0) for op in ops for c in op.control_inputs}
    return [t for t in plan.replica_feeds if key(t) in taken]


def _is_of_host(plan: StepPlan, op: tf.Operation, one_program: bool) -> bool:
    """Whether the host runs `op`, after the replicas.

    With `one_program`, an op that depends on neither input nor replicas, and is no host call, is in
    the device part: it sees variables as the step does, and shared ops run once.
    """
    if op.name in plan.behind_host_placeholders():
        return True
    if op.name in plan.replica_ops or op.name in plan.behind_input():
        return False
    return not one_program or op.name in plan.host_calls


def _host_part(
    given: Mapping[Key, tf.Tensor], fetches: list[tf.Tensor], targets: list[tf.Operation]
) -> Part:
    """A part for the host, fed the tensors of `given` that it needs."""
    ops = graph_ops.ancestors([*(t.op for t in fetches), *targets], given)
    used = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
    used |= {(op.name, 0) for op in ops}  # control inputs count as well
    return Part([t for k, t in given.items() if k in used], fetches, targets)
