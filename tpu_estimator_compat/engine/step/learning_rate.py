"""The learning rate of a captured training step: found in its graph, and replaced by a variable."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import key
from tpu_estimator_compat.engine.refs import resource_graph

_UPDATES = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")
_WRITERS = frozenset(name for name in dir(tf.raw_ops) if name.startswith(_UPDATES))
_COPIES = frozenset({"Identity", "Cast"})


def find(train_ops: Sequence[tf.Operation], trainable: Collection[str]) -> list[tf.Tensor]:
    """The tensors of the one learning rate that all updates of the variables `trainable` use.

    An optimizer's op has the rate among its inputs; every other update must depend on the rate.
    The tensors are a scalar, or reads of one, in the graph on resource variables (see
    `resource_graph`). Raises ValueError, with the reason, where there is no such rate.
    """
    resources = resource_graph.of(train_ops[0].graph)
    graph, train_ops = resources.graph, list(map(resources.operation, train_ops))
    ops = graph_ops.in_creation_order(graph_ops.ancestors(train_ops, ()))
    updates = [op for op in ops if _is_written(graph, op, trainable)]
    found = graph_ops.distinct(r for op in updates if (r := _rate_of(op)) is not None)
    if not found:
        types = ", ".join(sorted({op.type for op in updates}))
        others = f", only {types}" if types else ""
        raise ValueError(
            f"no optimizer op with a learning rate updates the trainable variables{others}"
        )
    if len({_origin(rate) for rate in found}) > 1:
        names = ", ".join(rate.name for rate in found[:5])
        raise ValueError(f"its optimizers use {len(found)} different rates: {names}")
    if any(op.type.startswith("Placeholder") for op in _behind(found)):
        raise ValueError(f"its rate {found[0].name} depends on the input")
    rates = {rate.op for rate in found}
    for op in updates:
        if _rate_of(op) is None and rates.isdisjoint(_behind(list(op.inputs))):
            raise ValueError(f"{op.name} ({op.type}) updates a variable without using the rate")
    return found


def replace(rates: Sequence[tf.Tensor]) -> tf.Operation:
    """Replaces `rates` by a new variable without a value; returns its handle op."""
    graph, dtype = rates[0].graph, rates[0].dtype
    before = len(graph.get_operations())
    finalized = graph.finalized  # by a Scaffold
    graph._unsafe_unfinalize()
    with graph.as_default(), tf.control_dependencies(None):
        handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=[], name="learning_rate_of_keras")
        read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
        values = [tf.cast(read, rate.dtype) for rate in rates]
    # The graph's operations are run in the order in which they are created.
    graph_ops.place_first(graph.get_operations()[before:])
    for rate, value in zip(rates, values, strict=True):
        for op in rate.consumers():
            for i, tensor in enumerate(op.inputs):
                if tensor is rate:
                    op._update_input(i, value)
    if finalized:
        graph.finalize()
    return handle.op


def _is_written(graph: tf.Graph, op: tf.Operation, names: Collection[str]) -> bool:
    """Whether `op`, or a function that it calls, writes to one of the variables `names`."""
    taken = any(t.dtype == tf.resource and t.op.name in names for t in op.inputs)
    return taken and graph_def.has_types(graph, [op], _WRITERS)


def _rate_of(op: tf.Operation) -> tf.Tensor | None:
    """The tensor, before copies, that an update takes as its rate; None if there is none."""
    if not op.type.startswith(("ResourceApply", "ResourceSparseApply")):
        return _rate_by_hand(op)
    names = [argument.name for argument in op.op_def.input_arg]
    name = next((n for n in ("lr", "alpha") if n in names), None)
    return None if name is None else _original(op.inputs[names.index(name)])


def _rate_by_hand(op: tf.Operation) -> tf.Tensor | None:
    """The rate of an optimizer that is written in Python, such as BERT's.

    It assigns `variable - rate * update`, or subtracts `rate * update`. A constant factor is not
    taken for a rate: the product may be something else than a step along a gradient.
    """
    step = op.inputs[1] if op.type == "AssignSubVariableOp" else None
    if op.type == "AssignVariableOp":
        made = _original(op.inputs[1]).op
        own = made.type == "Sub" and _original(made.inputs[0]).op
        if own and own.type == "ReadVariableOp" and own.inputs[0] is op.inputs[0]:
            step = made.inputs[1]
    product = None if step is None else _original(step).op
    if product is None or product.type != "Mul" or product.outputs[0].shape.rank == 0:
        return None
    scalars = [t for t in map(_original, product.inputs) if t.shape.rank == 0]
    return scalars[0] if len(scalars) == 1 and scalars[0].op.type != "Const" else None


def _original(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor of which `tensor` is a copy, perhaps in another precision."""
    while tensor.op.type in _COPIES and tensor.op.inputs[0].dtype.is_floating:
        tensor = tensor.op.inputs[0]
    return tensor


def _origin(rate: tf.Tensor) -> graph_ops.Key:
    return key(rate.op.inputs[0] if rate.op.type == "ReadVariableOp" else rate)


def _behind(tensors: Sequence[tf.Tensor]) -> set[tf.Operation]:
    """The operations on which the values of `tensors` depend, without control inputs."""
    seen: set[tf.Operation] = set()
    stack = [tensor.op for tensor in tensors]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(tensor.op for tensor in op.inputs)
    return seen
