"""The ops by which replicas exchange values: a table of one row per type.

A row gives all that depends on the type: the cut of a step into stages, the op for a sole replica,
the exchange among CPU or GPU replicas, and XLA's lowering. TPU cores have kernels and run the ops
unchanged. A new type needs a row, and a function that computes one replica's result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.functions import placement
from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.engine.graph.graph_def import NodeDef
from tpu_estimator_compat.tf_internals import distribute_utils, smart_cond

Groups = tuple[tuple[int, ...], ...]
Exchange = Callable[[Sequence[tf.Operation], Sequence[tf.Tensor], int], Sequence[tf.Tensor]]
Received = Callable[[tf.Operation, Sequence[tf.Tensor], int], tf.Tensor]


@dataclasses.dataclass(frozen=True)
class XlaOp:
    """A TensorFlow op with the collective's inputs, which XLA lowers on a CPU.

    `attributes` are string attributes that it has besides the collective's.
    """

    op_type: str
    attributes: Mapping[str, bytes]


@dataclasses.dataclass(frozen=True)
class StableHloOp:
    """A StableHLO op to which no TensorFlow op lowers on a CPU, so that it is called by name.

    Attributes:
      name: of the op in StableHLO.
      participants: the attribute that takes the value of the collective's input 1.
      attributes: integer attributes that have the same names in TensorFlow.
    """

    name: str
    participants: str
    attributes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Collective:
    """A type of op by which replicas exchange a value, its input 0.

    Attributes:
      op_type: the type's name in TensorFlow.
      api: the function that users call to make one.
      participants: the name of input 1, a constant int32 matrix. A `group_assignment` has a row of
        replica ids per group; of `source_target_pairs`, each row is a sender and a receiver.
      exchange: runs it on CPU or GPU replicas: takes ops of this type, one replica's value for each
        and the number of replicas; returns that replica's results, in the same order.
      alone: rewrites a node for a sole participant; None where `exchange` computes the result,
        since it depends on `participants`.
      gradient: the type of op that TensorFlow's registered gradient makes.
      lowering: its replacement for XLA.
      adds_up: whether it adds up gradients, as training on several replicas demands.
    """

    op_type: str
    api: str
    participants: str
    exchange: Exchange
    alone: Callable[[NodeDef], None] | None
    gradient: str
    lowering: XlaOp | StableHloOp
    adds_up: bool = False


def participants(op: tf.Operation) -> np.ndarray | None:
    """The value of a collective's input 1; None where it is no constant.

    The gradient of a CollectivePermute computes its pairs from those of the op.
    """
    return smart_cond.smart_constant_value(op.inputs[1])


def groups_of(op: tf.Operation, replicas: int) -> Groups:
    """The groups of replica ids in which `op` exchanges; an empty `group_assignment` means all.

    Raises ValueError where the assignment does not name every replica exactly once.
    """
    assignment = participants(op)
    everyone = tuple(range(replicas))
    if assignment is None or np.size(assignment) == 0:
        return (everyone,)
    groups = tuple(tuple(int(r) for r in row) for row in np.atleast_2d(assignment))
    if tuple(sorted(r for group in groups for r in group)) != everyone:
        raise ValueError(
            f"{op.name}: group_assignment {groups} must name each of the {replicas} "
            "replicas exactly once."
        )
    return groups


def _copy(node: NodeDef) -> None:
    """Turns a collective of one participant, which keeps its value, into a copy."""
    if node.attr["split_count"].i > 1:
        raise ValueError(
            f"{node.name}: {node.op} with split_count={node.attr['split_count'].i} needs as many "
            "replicas in a group, but one takes part."
        )
    node.op = "Identity"
    for name in [name for name in node.attr if name != "T" and not name.startswith("_")]:
        del node.attr[name]
    graph_def.set_inputs(node, [node.input[0], *(i for i in node.input if i.startswith("^"))])


def _sum(
    ops: Sequence[tf.Operation], values: Sequence[tf.Tensor], replicas: int
) -> Sequence[tf.Tensor]:
    """Adds up over the replicas of each group, in one batch per grouping."""
    batches: dict[Groups, list[int]] = {}
    for index, op in enumerate(ops):
        batches.setdefault(groups_of(op, replicas), []).append(index)
    sums: dict[int, tf.Tensor] = {}
    for groups, members in batches.items():
        name = " ".join(ops[i].name for i in members)
        summed = _sum_over(groups, [values[i] for i in members], name)
        sums.update(zip(members, summed, strict=True))
    return [sums[i] for i in range(len(ops))]


def _sum_over(groups: Groups, values: Sequence[tf.Tensor], name: str) -> Sequence[tf.Tensor]:
    context = tf.distribute.get_replica_context()
    if len(groups) == 1:
        return _sum_over_all(values, name)
    replica = context.replica_id_in_sync_group
    totals: list[Sequence[tf.Tensor]] = []
    for group in groups:
        member = tf.reduce_any(tf.equal(replica, list(group)))
        shares = [tf.where(member, v, tf.zeros_like(v)) for v in values]
        totals.append(_sum_over_all(shares, f"{name} {group}"))
    own = tf.argmax([tf.reduce_any(tf.equal(replica, list(group))) for group in groups])
    return [tf.stack(sums)[own] for sums in zip(*totals, strict=True)]


def _sum_over_all(values: Sequence[tf.Tensor], name: str) -> Sequence[tf.Tensor]:
    context = tf.distribute.get_replica_context()
    if group := workers.of(context.strategy):
        return group.sum_over_replicas(values, name)
    if placement.common_device(context.strategy) is None:
        return context.all_reduce(tf.distribute.ReduceOp.SUM, list(values))

    # TF's collectives between logical CPUs fail once a process has strategies of two sizes.
    def add_up(strategy, per_replica):
        del strategy
        reduction = tf.distribute.ReductionToOneDevice()
        return reduction.batch_reduce(tf.distribute.ReduceOp.SUM, [(v, v) for v in per_replica])

    return context.merge_call(add_up, args=(list(values),))


def _handing_out(received: Received) -> Exchange:
    """Makes an exchange from `received`, which computes a replica's result from all values."""

    def exchange(
        ops: Sequence[tf.Operation], values: Sequence[tf.Tensor], replicas: int
    ) -> Sequence[tf.Tensor]:
        if replicas == 1:
            return [received(op, [value], 0) for op, value in zip(ops, values, strict=True)]
        context = tf.distribute.get_replica_context()
        if group := workers.of(context.strategy):
            own = int(tf.get_static_value(context.replica_id_in_sync_group))
            gathered = [
                tf.unstack(group.concatenate(value[tf.newaxis], op.name), replicas)
                for op, value in zip(ops, values, strict=True)
            ]
            return [received(op, given, own) for op, given in zip(ops, gathered, strict=True)]

        def hand_out(strategy: tf.distribute.Strategy, per_replica: list[Any]) -> list[Any]:
            given = [distribute_utils.select_replica(r, per_replica) for r in range(replicas)]
            results = []
            for replica, device in enumerate(strategy.extended.worker_devices):
                with tf.device(device):
                    columns = zip(ops, zip(*given, strict=True), strict=True)
                    results.append([received(op, column, replica) for op, column in columns])
            return distribute_utils.regroup(tuple(results))

        return context.merge_call(hand_out, args=(list(values),))

    return exchange


def _permuted(op: tf.Operation, values: Sequence[tf.Tensor], replica: int) -> tf.Tensor:
    """The value of the replica that sends to `replica`; zeros where none does."""
    constant = participants(op)
    if constant is None:
        raise ValueError(f"{op.name}: source_target_pairs must be a constant.")
    pairs = np.reshape(constant, [-1, 2]).tolist()
    for ids in zip(*pairs, strict=True):
        if len(set(ids)) < len(ids) or not set(ids) <= set(range(len(values))):
            raise ValueError(
                f"{op.name}: source_target_pairs {pairs} must name each of the {len(values)} "
                "replicas at most once as a source and at most once as a target."
            )
    sender = {target: source for source, target in pairs}.get(replica)
    return tf.zeros_like(values[replica]) if sender is None else tf.identity(values[sender])


def _all_to_all(op: tf.Operation, values: Sequence[tf.Tensor], replica: int) -> tf.Tensor:
    """The replica's piece of each value of its group, concatenated."""
    [group] = [group for group in groups_of(op, len(values)) if replica in group]
    count, split = op.get_attr("split_count"), op.get_attr("split_dimension")
    place = group.index(replica)
    pieces = [tf.split(values[member], count, split)[place] for member in group]
    return tf.concat(pieces, op.get_attr("concat_dimension"))


TABLE = (
    Collective(
        op_type="CrossReplicaSum",
        api="CrossShardOptimizer or cross_replica_sum",
        participants="group_assignment",
        exchange=_sum,
        alone=_copy,
        gradient="CrossReplicaSum",
        lowering=XlaOp("XlaAllReduce", {"reduce_op": b"Add", "mode": b"CrossReplica"}),
        adds_up=True,
    ),
    Collective(
        op_type="CollectivePermute",
        api="collective_permute",
        participants="source_target_pairs",
        exchange=_handing_out(_permuted),
        alone=None,
        gradient="CollectivePermute",
        lowering=StableHloOp("collective_permute", "source_target_pairs"),
    ),
    Collective(
        op_type="AllToAll",
        api="all_to_all",
        participants="group_assignment",
        exchange=_handing_out(_all_to_all),
        alone=_copy,
        gradient="AllToAll",
        lowering=StableHloOp(
            "all_to_all", "replica_groups", ("concat_dimension", "split_dimension", "split_count")
        ),
    ),
)
OP_TYPES = frozenset(row.op_type for row in TABLE)
SUMS = frozenset(row.op_type for row in TABLE if row.adds_up)
ALONE: graph_def.Rewrites = {row.op_type: row.alone for row in TABLE if row.alone}
"""Rewrites of collectives with one participant, for `graph_def.subgraph_def`."""


def exchanged(ops: Collection[tf.Operation], replicas: int) -> set[tf.Operation]:
    """The ops at which CPU or GPU replicas meet; other collectives have one participant.

    Outside a TPU shard context TensorFlow assumes one shard, and makes a group of replica 0 alone.
    """
    return {op for op in ops if op.type in OP_TYPES and not _is_alone(op, replicas)}


def _is_alone(op: tf.Operation, replicas: int) -> bool:
    if op.type not in ALONE:
        return False
    groups = None if replicas == 1 else participants(op)
    return replicas == 1 or (groups is not None and groups.tolist() == [[0]])


def depends_on_replicas(op: tf.Operation) -> bool:
    """Whether `op` gives the replica's id, or a value that several replicas exchange."""
    if op.type not in OP_TYPES:
        return op.type == "XlaReplicaId"
    return (found := participants(op)) is not None and found.size > 1


def exchange(
    ops: Sequence[tf.Operation], values: Sequence[tf.Tensor], replicas: int
) -> dict[tf.Operation, tf.Tensor]:
    """Exchanges values among CPU or GPU replicas; returns the caller's results, by collective.

    Call it on every replica, with `ops` in the same order.
    """
    results: dict[tf.Operation, tf.Tensor] = {}
    for row in TABLE:
        pairs = [(op, v) for op, v in zip(ops, values, strict=True) if op.type == row.op_type]
        if pairs:
            members, sent = zip(*pairs, strict=True)
            results.update(zip(members, row.exchange(members, sent, replicas), strict=True))
    return results


def refuse_nested(graph: tf.Graph, ops: Collection[tf.Operation], replicas: int) -> None:
    """Raises NotImplementedError where functions that `ops` call would exchange values."""
    if not graph_def.functions_with(graph, ops, OP_TYPES):
        return
    for row in TABLE:
        if replicas == 1 and row.alone:
            continue
        if names := graph_def.functions_with(graph, ops, {row.op_type}):
            elsewhere = "" if replicas == 1 else ", or run on one replica"
            raise NotImplementedError(
                f"{row.op_type} inside a tf.cond or tf.while_loop ({', '.join(names)}) cannot be "
                f"exchanged among {replicas} CPU or GPU replicas. Move {row.api} out of the "
                f"branch{elsewhere}."
            )


def adds_up(graph: tf.Graph) -> bool:
    """Whether `graph`, or a function that it calls, has an op that adds up over replicas."""
    ops = graph.get_operations()
    return graph_def.has_types(graph, ops, SUMS)
