"""Cuts a step: the replicas' share, the host's share, host calls, and what is sent between them.

A fetch or target belongs to the host if it depends on something concatenated over replicas
(metrics, host calls, predictions), to the replicas if it depends on the step's input, and to the
host otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, simplify
from tpu_estimator_compat.engine.graph.graph_ops import Key, distinct, key
from tpu_estimator_compat.engine.step.plan import StepPlan


@dataclasses.dataclass(frozen=True)
class Share:
    """A part of a step.

    Attributes:
      feeds: tensors whose values it is given.
      fetches: tensors whose values it gives.
      targets: operations that it runs for their effect.
    """

    feeds: list[tf.Tensor]
    fetches: list[tf.Tensor]
    targets: list[tf.Operation]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.fetches and not self.targets

    def without(self, names: Collection[str]) -> Share:
        """The share without targets of these names; it is given and gives the same tensors."""
        kept = [op for op in self.targets if op.name not in names]
        return dataclasses.replace(self, targets=kept)


@dataclasses.dataclass(frozen=True)
class StepCut:
    """The parts of a step.

    Attributes:
      plan: the computation of a step.
      fed: tensors whose values the caller gives with every step.
      own: the plan's fetches that are the replicas'.
      targets: the plan's targets that are the replicas'.
      host: the host's share: metrics, fetches that no replica computes.
      calls: host calls that are a share of their own.
      sent: placeholders of `host` and `calls`, by `key()`, each with the replicas' tensor whose
        values, concatenated over the replicas, it stands for.
    """

    plan: StepPlan
    fed: list[tf.Tensor]
    own: list[tf.Tensor]
    targets: list[tf.Operation]
    host: Share
    calls: Share
    sent: Mapping[Key, tuple[tf.Tensor, tf.Tensor]]

    @functools.cached_property
    def from_stage(self) -> list[tf.Tensor]:
        """The tensors sent to the host's share that the host stage gives."""
        sent = distinct(t for _, t in self.sent.values())
        return [t for t in sent if self.plan.is_of_stage(t)]

    @functools.cached_property
    def from_replicas(self) -> list[tf.Tensor]:
        """The tensors sent to the host that replicas give."""
        sent = distinct(t for _, t in self.sent.values())
        return [t for t in sent if not self.plan.is_of_stage(t)]

    def of_replicas(self, fetches: Sequence[tf.Tensor]) -> Share:
        """The replicas' share.

        Args:
          fetches: its results: as a rule `own` and `from_replicas`.

        Returns:
          The share. Its feeds are those of the plan's `replica_feeds` that it takes, then `fed`.
        """
        fetches = distinct(fetches)
        feeds = _needed_feeds(self.plan, fetches, self.targets)
        return Share([*feeds, *self.fed], fetches, self.targets)


def cut(
    plan: StepPlan,
    fed: Sequence[tf.Tensor] = (),
    *,
    one_replica: bool = False,
    one_program: bool = False,
    apart: frozenset[str] = frozenset(),
) -> StepCut:
    """Cuts a step.

    Args:
      plan: the computation of a step.
      fed: tensors whose values the caller gives with every step.
      one_replica: whether nothing is concatenated: the host is sent scalars where it may be.
      one_program: whether one device runs the shares of a sole replica and of the host.
      apart: names of host calls that are a share of their own.
    """
    sent = dict(plan.host_placeholders)
    if one_replica:
        taken = simplify.sole_elements(plan.host_placeholders.values())
        sent |= {key(element): (element, scalar) for element, scalar in taken}
    given = {k: placeholder for k, (placeholder, _) in sent.items()} | {key(t): t for t in fed}
    on_host = [op for op in plan.targets if _is_of_host(plan, op, one_program)]
    fetches = [t for t in plan.fetches if _is_of_host(plan, t.op, one_program)]
    host = _share(given, fetches, [op for op in on_host if op.name not in apart])
    calls = _share(given, [], [op for op in on_host if op.name in apart])
    used = {key(t) for t in (*host.feeds, *calls.feeds)}
    not_on_replicas = {*on_host, *(t.op for t in fetches)}
    return StepCut(
        plan,
        list(fed),
        distinct(t for t in plan.fetches if t.op not in not_on_replicas),
        [op for op in plan.targets if op not in not_on_replicas],
        host,
        calls,
        {k: pair for k, pair in sent.items() if k in used},
    )


def _needed_feeds(
    plan: StepPlan, fetches: Sequence[tf.Tensor], targets: Sequence[tf.Operation]
) -> list[tf.Tensor]:
    """The feeds of a plan's `replica_feeds` that a share of the replicas takes.

    Where there is a host stage, it alone takes some of the element, such as ids of any number: a
    device that wants static shapes could not take them.
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

    What ignores input and replicas, but is no host call, is a part of the replica's share where one
    program has both: it sees variables as the step does, and what both need happens once.
    """
    if op.name in plan.behind_host_placeholders():
        return True
    if op.name in plan.replica_ops or op.name in plan.behind_input():
        return False
    return not one_program or op.name in plan.host_calls


def _share(
    given: Mapping[Key, tf.Tensor], fetches: list[tf.Tensor], targets: list[tf.Operation]
) -> Share:
    """A share of the host, which takes what it needs of the tensors `given`."""
    ops = graph_ops.ancestors([*(t.op for t in fetches), *targets], given)
    used = {key(t) for op in ops for t in op.inputs} | {key(t) for t in fetches}
    used |= {(op.name, 0) for op in ops}  # for their time, not for their value
    return Share([t for k, t in given.items() if k in used], fetches, targets)
