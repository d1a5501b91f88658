"""Operations of a captured graph: their identity, dependencies, effects and order."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from tpu_estimator_compat.tf_internals import auto_control_deps_utils, op_def_registry

Key = tuple[str, int]
# Ops whose resource lives for one execution of a graph, or belongs to an op that a string names.
_PER_STEP_RESOURCES = frozenset(
    {
        "TensorArrayV3",
        "StackV2",
        "Placeholder",
        "IteratorFromStringHandle",
        "IteratorFromStringHandleV2",
    }
)
_PLACE = "_place_in_creation_order"
_ORIGINAL = "_made_by_user"
READERS = frozenset(
    {
        "ReadVariableOp",
        "VarIsInitializedOp",
        "IsVariableInitialized",
        "ResourceGather",
        "ResourceGatherNd",
        "VariableShape",
        "Identity",
    }
)
"""Operations that take a variable's handle and do not change the variable."""
READS_AROUND = "_reads_around_branches"
"""Attribute of a variable that branches read: the reads, which are outside of the branches."""


def key(tensor: tf.Tensor) -> Key:
    """A hashable identity of a graph tensor: (name of its op, output index)."""
    return tensor.op.name, tensor.value_index


def resources(op: tf.Operation) -> list[Key]:
    """The resources that `op` takes."""
    return [key(t) for t in op.inputs if t.dtype is tf.resource]  # DType's == takes 0.5 us


def distinct(tensors: Iterable[tf.Tensor]) -> list[tf.Tensor]:
    return list({key(tensor): tensor for tensor in tensors}.values())


def as_operation(target: Any) -> tf.Operation:
    """`target`, if it is an operation, or the operation of a tensor or variable.

    After a warm start, a ref variable's initializer is a tensor, the output of its assignment.
    """
    return target if isinstance(target, tf.Operation) else target.op


def definition(op: tf.Operation) -> Any:
    """The OpDef of `op`; an operation's own attribute copies it each time."""
    return op_def_registry.get(op.type) or op.op_def


def is_variable_handle(op: tf.Operation) -> bool:
    return op.type in ("VarHandleOp", "VariableV2", "Variable", "AutoReloadVariable")


def is_resource_creator(op: tf.Operation) -> bool:
    """Whether `op` makes a host resource (hash table, iterator, ...) that outlives a step."""
    if is_variable_handle(op) or op.type in _PER_STEP_RESOURCES:
        return False
    outputs = op.outputs
    if not outputs or outputs[0].dtype != tf.resource:
        return False
    return not any(t.dtype in (tf.resource, tf.variant) for t in op.inputs) and (
        definition(op).is_stateful
    )


def is_handle(op: tf.Operation) -> bool:
    return is_variable_handle(op) or is_resource_creator(op)


@functools.cache
def is_of_session(kind: str) -> bool:
    """Whether kernels find their state by name in a session: accumulators, staging areas, barriers.

    Other kernels have a handle of a resource, which functions take. Those of sparse tensors in
    queues need none of a session: an element holds the keys of its tensors.
    """
    definition = op_def_registry.get(kind)
    if definition is None or "TensorsMap" in kind:
        return False
    named = any(attribute.name == "shared_name" for attribute in definition.attr)
    outputs = definition.output_arg
    handle = any(each.type == types_pb2.DT_RESOURCE for each in outputs)
    variable = any(each.is_ref and each.type_attr for each in outputs)
    return "Session" in kind or (named and not handle and not variable)


def ancestors(
    targets: Iterable[tf.Operation],
    stops: Collection[Key],
    idle: Collection[tf.Operation] = (),
) -> set[tf.Operation]:
    """`targets`, and all operations that they depend on, by control inputs too.

    Producers of the tensors `stops` (feeds and handles) are not followed, nor are control
    dependencies on `idle` operations.
    """
    seen: set[tf.Operation] = set()
    stack = list(targets)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        stack.extend(t.op for t in op.inputs if key(t) not in stops)
        stack.extend(c for c in op.control_inputs if c not in idle)
    return seen


def has_effect(op: tf.Operation) -> bool:
    """Whether running `op` may change a variable, a file, or Python's state."""
    if op.type in READERS or is_handle(op):
        return False
    taken = definition(op)
    return taken.is_stateful or any(argument.is_ref for argument in taken.input_arg)


def written(op: tf.Operation) -> list[tf.Tensor]:
    """The inputs of `op` that it may change: resources that it, or a branch, does not only read."""
    if not has_effect(op):
        return []
    _, changed = auto_control_deps_utils.get_read_write_resource_inputs(op)
    return [*changed, *(t for t in op.inputs if t.dtype._is_ref_dtype)]


def draws(op: tf.Operation) -> bool:
    """Whether each run of `op` may give another value: random ops, iterators, Python ops, feeds."""
    return op.type.startswith("Placeholder") or has_effect(op)


def calls_functions(op: tf.Operation) -> bool:
    """Whether `op` runs functions of the graph's library, as branches and loops do."""
    return kind_calls_functions(op.type)


@functools.cache
def kind_calls_functions(kind: str) -> bool:
    """Whether operations of a type name functions in attributes, or are functions themselves."""
    definition = op_def_registry.get(kind)
    return definition is None or any("func" in attr.type for attr in definition.attr)


def in_creation_order(ops: Iterable[tf.Operation]) -> list[tf.Operation]:
    """Sorts by creation, a legal and deterministic order of effects."""
    return sorted(ops, key=lambda op: getattr(op, _PLACE, op._id))


def place_first(ops: Sequence[tf.Operation]) -> None:
    """Makes `ops` count as created before all others of a graph, which may then depend on them."""
    if not ops:
        return
    first = min(getattr(op, _PLACE, 0) for op in ops[0].graph.get_operations())
    for place, op in enumerate(ops, start=first - len(ops)):
        setattr(op, _PLACE, place)


def note_original(copy: tf.Operation, op: tf.Operation) -> None:
    """Records that `copy` is a copy of `op`, which a user's code made in another graph."""
    setattr(copy, _ORIGINAL, op)
    if hasattr(op, _PLACE):
        setattr(copy, _PLACE, getattr(op, _PLACE))


def original(op: tf.Operation) -> tf.Operation:
    """The operation that a user's code made: `op`, or the operation of which it is a copy."""
    return getattr(op, _ORIGINAL, op)
