"""Cuts the pruned graph of a replica program into stages, where replicas must exchange values.

Every op gets a level: the number of collectives on its longest path from a feed. Ops of one level
form a stage; after it, the replicas exchange the inputs of its collectives.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, simplify
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step import collectives


@dataclasses.dataclass
class Stage:
    """Ops that run between two exchanges.

    Attributes:
      ops: the operations, in creation order, collectives excluded.
      inputs: tensors that come from feeds, handles or earlier stages.
      outputs: tensors that later stages, collectives or the caller want.
      collectives: the collectives whose inputs are ready after this stage.
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
    exchanged: Collection[tf.Operation],
    reads_first: bool = False,
) -> list[Stage]:
    """Cuts pruned operations into stages, in the order in which they run.

    Args:
      ops: the operations to run, as `graph_ops.ancestors` found them.
      stops: feeds and handles: tensors that come from outside.
      exchanged: the collectives at which stages end; without any, everything is one stage.
      reads_first: see `simplify.reads_first`.
    """
    order = graph_ops.in_creation_order(ops)
    if reads_first:
        order = simplify.reads_first(order)
    levels = _levels(order, stops, exchanged)
    _postpone(order, levels, {*exchanged, *(t.op for t in fetches)})
    last = max(levels.values(), default=0)
    stages = [_stage(order, levels, level, exchanged) for level in range(last + 1)]
    _set_outputs(stages, fetches)
    return stages


def _levels(
    order: Sequence[tf.Operation], stops: Collection[Key], exchanged: Collection[tf.Operation]
) -> dict[tf.Operation, int]:
    """The stage of each operation.

    Creation order is topological: control flow v2 has no back edges. It is also the order of
    effects on a variable, across stages too: a read that follows a write, or a write that follows a
    read, is in no earlier stage.
    """
    levels: dict[tf.Operation, int] = {}
    written: dict[Key, int] = {}  # the level of the last write to a variable
    touched: dict[Key, int] = {}  # the level of the last read or write
    for op in order:
        before = [t.op for t in op.inputs if key(t) not in stops] + list(op.control_inputs)
        level = max((levels[b] + (b in exchanged) for b in before if b in levels), default=0)
        reads = op.type in graph_ops.READERS
        variables = graph_ops.resources(op)
        level = max([level, *((written if reads else touched).get(v, 0) for v in variables)])
        for variable in variables:
            touched[variable] = max(touched.get(variable, 0), level)
            if not reads:
                written[variable] = level
        levels[op] = level
    return levels


def _postpone(
    order: Sequence[tf.Operation],
    levels: dict[tf.Operation, int],
    placed: Collection[tf.Operation],
) -> None:
    """Moves operations, except `placed`, to the first stage that needs their results.

    Otherwise an optimizer's reads, and what it computes from slots, would take memory before the
    gradients are there.
    """
    written: dict[Key, set[int]] = {}
    for op in order:
        if op.type not in graph_ops.READERS:
            for variable in graph_ops.resources(op):
                written.setdefault(variable, set()).add(levels[op])
    needed: dict[tf.Operation, int] = {}  # the first level that needs it
    for op in reversed(order):
        level, later = levels[op], needed.get(op, 0)
        if later > level and op not in placed and _may_wait(op):
            writes = (w for variable in graph_ops.resources(op) for w in written.get(variable, ()))
            if not any(level <= write < later for write in writes):
                levels[op] = level = later
        for before in [*(t.op for t in op.inputs), *op.control_inputs]:
            needed[before] = min(level, needed.get(before, level))


def _may_wait(op: tf.Operation) -> bool:
    """Whether `op` gives the same value later, unless a variable that it reads is written."""
    if op.type == "ReadVariableOp":
        return True
    return not graph_ops.definition(op).is_stateful and not graph_ops.resources(op)


def _stage(
    order: Sequence[tf.Operation],
    levels: dict[tf.Operation, int],
    level: int,
    exchanged: Collection[tf.Operation],
) -> Stage:
    here = [op for op in order if levels[op] == level]
    ordinary = [op for op in here if op not in exchanged]
    inside = set(ordinary)
    inputs = {key(t): t for op in ordinary for t in _values(op) if t.op not in inside}
    ends = [op for op in here if op in exchanged]
    return Stage(ops=ordinary, inputs=list(inputs.values()), outputs=[], collectives=ends)


def _values(op: tf.Operation) -> Sequence[tf.Tensor]:
    """The inputs of `op`; of a collective, which has one participant here, the first."""
    return op.inputs[:1] if op.type in collectives.OP_TYPES else op.inputs


def _set_outputs(stages: Sequence[Stage], fetches: Sequence[tf.Tensor]) -> None:
    wanted = {key(t): t for t in fetches}
    for stage in stages:
        wanted.update((key(t), t) for t in stage.inputs)
        wanted.update((key(op.inputs[0]), op.inputs[0]) for op in stage.collectives)
    for stage in stages:
        inside = set(stage.ops)
        stage.outputs = [t for t in wanted.values() if t.op in inside]
