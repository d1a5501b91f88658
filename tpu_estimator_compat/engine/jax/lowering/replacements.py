"""Replaces operations without an XLA kernel by functions of operations that have one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.graph.graph_def import NodeDef, Rewrites
from tpu_estimator_compat.engine.graph.sources import Sources
from tpu_estimator_compat.engine.jax.lowering import sparse_updates
from tpu_estimator_compat.tf_internals import context


class _Replacement(NamedTuple):
    """The replacement of an op type, for those of its operations that `fits` accepts.

    `call` takes the op's type, inputs and boolean attributes; returns its outputs.
    """

    fits: Callable[[tf.Operation], bool]
    call: Callable[[str, Sequence[tf.Tensor], dict[str, bool]], Sequence[tf.Tensor]]


def _resized_gradient(
    op_type: str, inputs: Sequence[tf.Tensor], switches: dict[str, bool]
) -> Sequence[tf.Tensor]:
    """The gradient of `tf.image.resize_nearest_neighbor`, for which only a TPU's XLA has a kernel.

    Adds up, for each pixel of the original image, the gradients of its copies.

    The inputs are gradients [batch, rows, columns, channels] and the size of the original image,
    int32 [2]; the switches are `align_corners` and `half_pixel_centers`.
    """
    del op_type
    gradients, size = inputs
    rows, columns = (
        _copies(tf.shape(gradients)[axis], size[axis - 1], gradients.dtype, **switches)
        for axis in (1, 2)
    )
    return [tf.einsum("byxc,yr,xs->brsc", gradients, rows, columns)]


def _copies(
    after: tf.Tensor, before: tf.Tensor, dtype: tf.DType, *, align_corners: bool, **others: bool
) -> tf.Tensor:
    """A matrix [after, before] of 0 and 1: the original of each pixel along one side.

    Positions are computed in float32, as in TensorFlow's kernel.
    """
    to, of = tf.cast(after, tf.float32), tf.cast(before, tf.float32)
    scale = of / to
    if align_corners:
        scale = tf.where(after > 1, (of - 1) / tf.maximum(to - 1, 1), scale)
    place = tf.range(to)
    if others["half_pixel_centers"]:
        place += 0.5
    place *= scale
    # Rounds half away from zero, which `tf.round` does not.
    place = tf.floor(place + 0.5) if align_corners else tf.floor(place)
    return tf.one_hot(tf.cast(tf.minimum(place, of - 1), tf.int32), before, dtype=dtype)


_TABLE = {
    **dict.fromkeys(
        sparse_updates.OP_TYPES, _Replacement(sparse_updates.is_lowered, sparse_updates.call)
    ),
    # It fits always: XLA itself refuses a size that is not constant.
    "ResizeNearestNeighborGrad": _Replacement(lambda op: True, _resized_gradient),
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
