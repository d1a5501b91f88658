"""Replaces operations without an XLA kernel by functions of operations that have one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_def import NodeDef, Rewrites
from tpu_estimator_compat.engine.graph.sources import Sources
from tpu_estimator_compat.engine.jax.lowering import nearest_neighbor, sparse_updates
from tpu_estimator_compat.engine.runtime import eager, functions
from tpu_estimator_compat.tf_internals import context


class _Replacement(NamedTuple):
    """The replacement of an op type, for those of its operations that `fits` accepts.

    `call` takes the op's type, inputs and boolean attributes; returns its outputs.
    """

    fits: Callable[[tf.Operation], bool]
    call: Callable[[str, Sequence[tf.Tensor], dict[str, bool]], Sequence[tf.Tensor]]


_TABLE = {
    **dict.fromkeys(
        sparse_updates.OP_TYPES, _Replacement(sparse_updates.is_lowered, sparse_updates.call)
    ),
    # It fits always: XLA itself refuses a size that is not constant.
    nearest_neighbor.OP_TYPE: _Replacement(lambda op: True, nearest_neighbor.call),
}

OP_TYPES = frozenset(_TABLE)
"""Types that may be replaced: see `is_replaced`."""


def is_replaced(op: tf.Operation) -> bool:
    return op.type in _TABLE and _TABLE[op.type].fits(op)


def rewrites(graph: tf.Graph) -> Rewrites:
    """The rewrites that replace operations of `graph`, for `graph_def.subgraph_def`."""
    return dict.fromkeys(_TABLE, functools.partial(_rewrite, Sources(graph)))


def _rewrite(sources: Sources, node: NodeDef) -> None:
    """Turns a node into the call of a function with the same inputs and outputs."""
    op = sources.find(node.name)
    if op is None or not is_replaced(op):
        return  # XLA names the op in its error
    given, returned = [t.dtype for t in op.inputs], [t.dtype for t in op.outputs]
    switches = {name: attr.b for name, attr in node.attr.items() if attr.WhichOneof("value") == "b"}
    name = _function(op.type, tuple(given), tuple(sorted(switches.items())))
    node.op = "PartitionedCall" if returned else "StatefulPartitionedCall"
    node.attr.clear()
    node.attr["f"].func.name = name
    for key, types in (("Tin", given), ("Tout", returned)):
        node.attr[key].list.type.extend(t.as_datatype_enum for t in types)


@functools.cache
def _function(
    op_type: str, dtypes: tuple[tf.DType, ...], switches: tuple[tuple[str, bool], ...]
) -> str:
    """Registers a function that replaces an op, and returns its name."""

    def call(*inputs: tf.Tensor) -> Sequence[tf.Tensor]:
        return _TABLE[op_type].call(op_type, inputs, dict(switches))

    described = [*(t.name for t in dtypes), *(f"{name}_{value}" for name, value in switches)]
    with eager.eager_mode():
        specs = [tf.TensorSpec([] if t == tf.resource else None, t) for t in dtypes]
        made: Any = functions.function(call)
        definition = made.get_concrete_function(*specs).function_def
        definition.signature.name = "_".join(["tpu_estimator_compat", op_type, *described])
        context.context().add_function_def(definition)
    return str(definition.signature.name)
