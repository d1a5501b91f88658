"""Sparse updates of variables, for XLA, which has no kernels for them.

A gradient of `tf.gather` has rows and their ids. TensorFlow's optimizers find the distinct ids
(`Unique`, whose number of results depends on data), add up rows of the same id, and update these
ids' rows in a variable and its slots (`ResourceSparseApply...`). Here the distinct ids are padded
to the number of all ids with ids of no row, whose updates XLA drops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from tpu_estimator_compat.engine.jax.lowering.sparse_formulas import FORMULAS
from tpu_estimator_compat.tf_internals import op_def_registry

_PREFIX, _UNIQUE = "ResourceSparseApply", "Unique"
_UPDATES = frozenset(_PREFIX + name for name in FORMULAS)
_SCATTERS = frozenset(f"ResourceScatter{kind}" for kind in ("Add", "Sub", "Update"))

OP_TYPES = (*_UPDATES, _UNIQUE)
"""Types that may be replaced: see `is_lowered`."""


def is_lowered(op: tf.Operation) -> bool:
    """Whether an op is replaced: a sparse update, or the `Unique` of its ids."""
    if op.type in _UPDATES:
        return _is_distinct(op.inputs[_inputs(op.type).index("indices")])
    # `_distinct` returns int32 indices, the type that TensorFlow's optimizers ask for.
    return op.type == _UNIQUE and op.outputs[1].dtype == tf.int32 and _is_of_updates(op)


def _is_distinct(ids: tf.Tensor) -> bool:
    """Whether ids come from `Unique`; TensorFlow would update the row of a repeated id twice."""
    while ids.op.type == "Identity":
        ids = ids.op.inputs[0]
    return bool(ids.op.type == _UNIQUE and ids.value_index == 0)


def _is_of_updates(op: tf.Operation) -> bool:
    """Whether the distinct ids of a `Unique` are used only to update their rows."""
    takers = list(_takers(op.outputs[0]))
    shapes = [taker for taker in takers if taker.type == "Shape"]
    others = {taker.type for taker in takers} - {"Shape"}
    sizes = [size for shape in shapes for size in _takers(shape.outputs[0])]
    segments = {segment.type for size in sizes for segment in _takers(size.outputs[0])}
    return (
        bool(others & (_UPDATES | _SCATTERS))
        and others <= _UPDATES | _SCATTERS | {"ResourceGather"}
        and {size.type for size in sizes} <= {"StridedSlice"}
        and segments <= {"UnsortedSegmentSum"}
    )


def _takers(tensor: tf.Tensor) -> Iterator[tf.Operation]:
    for op in tensor.consumers():
        if op.type == "Identity":
            yield from _takers(op.outputs[0])
        else:
            yield op


def call(
    op_type: str, inputs: Sequence[tf.Tensor], switches: dict[str, bool]
) -> Sequence[tf.Tensor]:
    """Replaces an op; see `replacements`."""
    if op_type == _UNIQUE:
        return _distinct(*inputs)
    _update(op_type, dict(zip(_inputs(op_type), inputs, strict=True)), switches)
    return []


def _inputs(op_type: str) -> list[str]:
    return [argument.name for argument in op_def_registry.get(op_type).input_arg]


def _distinct(ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The distinct ids, padded with ids of no row, and the index of each id among them."""
    count = tf.size(ids)
    ordered, order = gen_xla_ops.xla_key_value_sort(ids, tf.range(count))
    is_new = tf.concat([[False], ordered[1:] != ordered[:-1]], 0)
    place = tf.cumsum(tf.cast(is_new, tf.int32))
    nowhere = tf.fill([count], ids.dtype.max)
    found = tf.tensor_scatter_nd_update(nowhere, place[:, None], ordered)
    return found, tf.scatter_nd(order[:, None], place, [count])


def _update(op_type: str, values: dict[str, tf.Tensor], switches: dict[str, bool]) -> None:
    ids, dtype = values.pop("indices"), values["grad"].dtype
    handles = {name: value for name, value in values.items() if value.dtype == tf.resource}
    rows = {
        name: tf.raw_ops.ResourceGather(resource=handle, indices=ids, dtype=dtype)
        for name, handle in handles.items()
    }
    updated = FORMULAS[op_type.removeprefix(_PREFIX)]({**values, **rows, **switches})
    for name, new in updated.items():
        tf.raw_ops.ResourceScatterUpdate(resource=handles[name], indices=ids, updates=new)
