"""Second stage of a replica program: the pruned graph, cut where replicas must exchange values.

Every op gets a level: the number of collectives on its longest path from a feed. Ops of one level
form a stage; between stages the replicas add up that stage's collective inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.program import graph_def, graph_ops, simplify
from tpu_estimator_compat.program.graph_ops import Key, key


@dataclasses.dataclass
class Stage:
    """Ops that run between two exchanges.

    Attributes:
      ops: the operations, in creation order, collectives excluded.
      inputs: tensors that come from feeds, handles or earlier stages.
      outputs: tensors that later stages, collectives or the caller want.
      collectives: CrossReplicaSum ops whose inputs are ready after this stage.
    """

    ops: list[tf.Operation]
    inputs: list[tf.Tensor]
    outputs: list[tf.Tensor]
    collectives: list[tf.Operation]


def cut(
    ops: Collection[tf.Operation],
    fetches: Sequence[tf.Tensor],
    stops: Collection[Key],
    *,
    exchange: bool,
    reads_first: bool = False,
) -> list[Stage]:
    """Cuts pruned operations into stages.

    Args:
      ops: the operations to run, as `graph_ops.ancestors` found them.
      fetches: tensors that the caller wants.
      stops: feeds and handles: tensors that come from outside.
      exchange: whether several replicas take part; if not, everything is one stage.
      reads_first: see `simplify.reads_first`.

    Returns:
      The stages in the order in which they run.
    """
    order = graph_ops.in_creation_order(ops)
    if reads_first:
        order = simplify.reads_first(order)
    levels = _levels(order, stops, exchange)
    last = max(levels.values(), default=0)
    stages = [_stage(order, levels, level, exchange) for level in range(last + 1)]
    _set_outputs(stages, fetches)
    return stages


def _is_collective(op: tf.Operation, exchange: bool) -> bool:
    """Whether replicas exchange values here.

    Outside a TPU shard context TensorFlow assumes one shard, and asks for a sum over replica 0.
    """
    if not exchange or op.type != graph_def.COLLECTIVE:
        return False
    assignment = tf.get_static_value(op.inputs[1])
    return assignment is None or assignment.tolist() != [[0]]


def _levels(
    order: Sequence[tf.Operation], stops: Collection[Key], exchange: bool
) -> dict[tf.Operation, int]:
    """Creation order is topological: control flow v2 has no back edges.

    It is also the order of effects on a variable, as it is within a stage: who reads after a write
    is not to be in an earlier stage than that write, nor who writes after a read.
    """
    levels: dict[tf.Operation, int] = {}
    written: dict[Key, int] = {}  # the level of the last write to a variable
    touched: dict[Key, int] = {}  # and that of the last stage that reads or writes it
    for op in order:
        before = [t.op for t in op.inputs if key(t) not in stops] + list(op.control_inputs)
        level = max(
            (levels[b] + _is_collective(b, exchange) for b in before if b in levels), default=0
        )
        reads = op.type in graph_ops.READERS
        variables = [key(t) for t in op.inputs if t.dtype == tf.resource]
        level = max([level, *((written if reads else touched).get(v, 0) for v in variables)])
        for variable in variables:
            touched[variable] = max(touched.get(variable, 0), level)
            if not reads:
                written[variable] = level
        levels[op] = level
    return levels


def _stage(
    order: Sequence[tf.Operation], levels: dict[tf.Operation, int], level: int, exchange: bool
) -> Stage:
    here = [op for op in order if levels[op] == level]
    mine = [op for op in here if not _is_collective(op, exchange)]
    inside = set(mine)
    inputs = {key(t): t for op in mine for t in op.inputs if t.op not in inside}
    collectives = [op for op in here if _is_collective(op, exchange)]
    return Stage(ops=mine, inputs=list(inputs.values()), outputs=[], collectives=collectives)


def _set_outputs(stages: Sequence[Stage], fetches: Sequence[tf.Tensor]) -> None:
    wanted = {key(t): t for t in fetches}
    for stage in stages:
        wanted.update((key(t), t) for t in stage.inputs)
        wanted.update((key(op.inputs[0]), op.inputs[0]) for op in stage.collectives)
    for stage in stages:
        inside = set(stage.ops)
        stage.outputs = [t for t in wanted.values() if t.op in inside]


def groups_of(collective: tf.Operation, replicas: int) -> tuple[tuple[int, ...], ...]:
    """The groups of replica ids among which a CrossReplicaSum adds up.

    Args:
      collective: a CrossReplicaSum op; its second input is the group assignment, an int32 constant
        of shape [groups, replicas of a group], or empty for one group of all.
      replicas: how many replicas run.

    Returns:
      Tuples of replica ids; one tuple of all ids where no subgroups were asked for.

    Raises:
      ValueError: the assignment does not name every replica exactly once.
    """
    assignment = tf.get_static_value(collective.inputs[1])
    everyone = tuple(range(replicas))
    if assignment is None or np.size(assignment) == 0:
        return (everyone,)
    groups = tuple(tuple(int(r) for r in row) for row in np.atleast_2d(assignment))
    if tuple(sorted(r for group in groups for r in group)) != everyone:
        raise ValueError(
            f"{collective.name}: group_assignment {groups} must name each of the {replicas} "
            "replicas exactly once."
        )
    return groups
