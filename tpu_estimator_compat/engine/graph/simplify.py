"""Simplifies a pruned graph: removes needless control dependencies, repeated reads and reshapes.

TF1 code creates many. Grappler finds some, but none in the body of a loop on the single-threaded
executor, and it keeps the dependencies of an op that it drops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.graph.graph_ops import Key, key

_READ = "ReadVariableOp"
_READS_OF_STATE = frozenset({_READ, "QueueSizeV2"})
_MAY_FAIL = frozenset({"CheckNumerics", "CheckNumericsV2"})  # stateless, yet there for their effect


def idle_gates(ops: Collection[tf.Operation]) -> set[tf.Operation]:
    """NoOps among `ops` whose control dependencies order no effects; `ops` include ancestors.

    `tf.gradients` makes all gradients of an op wait for one NoOp, which waits for all of them. So
    TF1 also computed the gradient of the model's input, which nothing uses. Without the NoOp the
    order of effects is the same if each waiting tensor depends on all effects before the NoOp.
    """
    effects: dict[tf.Operation, int] = {}  # bit mask of the effects before an op
    bits = 0
    gates: dict[tf.Operation, bool] = {}
    for op in graph_ops.in_creation_order(ops):
        before = [*(t.op for t in op.inputs), *op.control_inputs]
        seen = 0
        for each in before:
            seen |= effects.get(each, 0)
        is_later = any(c in ops and c not in effects for c in op.control_inputs)  # made after `op`
        if is_later or _has_effect(op):
            seen |= 1 << bits
            bits += 1
        effects[op] = seen
        for gate in op.control_inputs:
            if gate.type == "NoOp" and gate in ops:
                held = _is_held(op, gate) and not is_later
                own = effects.get(op.inputs[0].op, 0) if held else 0
                idle = held and not effects[gate] & ~own
                gates[gate] = gates.get(gate, True) and idle
    return {gate for gate, idle in gates.items() if idle}


def _is_held(op: tf.Operation, gate: tf.Operation) -> bool:
    """Whether `op` is a copy from `tf.tuple`, which waits for all its tensors at `gate`."""
    return op.type == "Identity" and op.inputs[0].op in gate.control_inputs


def _has_effect(op: tf.Operation) -> bool:
    return (
        graph_ops.definition(op).is_stateful
        or graph_ops.calls_functions(op)
        or op.type in _MAY_FAIL
    )


def repeated_reads(ops: Sequence[tf.Operation], kept: Collection[str]) -> dict[str, str]:
    """Maps the name of each variable read that repeats an earlier one to the earlier one's name.

    `ops` are in the order in which they take effect; those named in `kept` have to stay.
    """
    first: dict[Key, dict[tuple[tf.DType, frozenset[str]], str]] = {}
    repeated: dict[str, str] = {}
    aliased: set[Key] = set()
    for op in ops:
        if op.type == _READ:
            variable = key(op.inputs[0])
            waits = frozenset(c.name for c in op.control_inputs)
            earlier = first.setdefault(variable, {}).setdefault(
                (op.outputs[0].dtype, waits), op.name
            )
            if earlier != op.name and op.name not in kept and variable not in aliased:
                repeated[op.name] = earlier
            continue
        handles = set(graph_ops.resources(op))
        for variable in handles:  # the op may write to it
            first.pop(variable, None)
        if any(t.dtype in (tf.resource, tf.variant) for t in op.outputs):
            aliased |= handles  # a later write may use another handle
    return repeated


def reads_first(order: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Moves reads of variables without dependencies before the writes, as TF1 ran them.

    `tf.train.get_global_step()`, used after `minimize`, was the step before its increment: a read
    without dependencies is ready when the step begins, an update only when there are gradients.
    Keras's code relies on the order of its lines: its reads stay. The result is topological too.
    """
    written: set[Key] = set()
    early = set()
    for op in order:
        if op.type not in _READS_OF_STATE:
            written.update(graph_ops.resources(op))
        elif key(op.inputs[0]) not in written or op.control_inputs:
            continue
        elif not sources.is_by(op, sources.READING_OF_KERAS):
            early.add(op)
    return [*(op for op in order if op in early), *(op for op in order if op not in early)]


def sole_elements(
    sent: Iterable[tuple[tf.Tensor, tf.Tensor]],
) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Yields (host's scalar, replica's scalar) where a replica sends a vector of one element.

    A TPU sends no scalars: users write `tf.reshape(x, [1])` on the replica and `x[0]` on the host.
    `sent` has placeholders on the host, and the tensors that they receive.
    """
    for placeholder, tensor in sent:
        scalar = tensor.op.inputs[0] if tensor.op.type in ("Reshape", "ExpandDims") else None
        if scalar is not None and scalar.shape.rank == 0 and tensor.shape == [1]:
            yield from ((op.outputs[0], scalar) for op in placeholder.consumers() if _picks(op))


def _picks(op: tf.Operation) -> bool:  # whether `op` is `x[0]`
    if op.type != "StridedSlice" or op.get_attr("shrink_axis_mask") != 1:
        return False
    if any(op.get_attr(f"{mask}_mask") for mask in ("begin", "ellipsis", "new_axis")):
        return False
    begin = tf.get_static_value(op.inputs[1])
    return begin is not None and begin.tolist() == [0]
