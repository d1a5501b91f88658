"""Sparse updates of variables, for XLA, which has no kernels for them.

A gradient of `tf.gather` has rows and their ids. TensorFlow's optimizers find the distinct ids
(`Unique`, the number of whose results depends on data), add up rows of the same id, and update the
rows of these ids in a variable and its slots (`ResourceSparseApply...`). Here there are as many
distinct ids as there are ids: those that are left over name no row, and XLA leaves out what is
scattered to them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.eager import context
from tensorflow.python.framework import op_def_registry

from tpu_estimator_compat.lowering.sparse_formulas import FORMULAS
from tpu_estimator_compat.program.graph_def import NodeDef, Rewrites
from tpu_estimator_compat.program.sources import Sources
from tpu_estimator_compat.runtime import eager, functions

_PREFIX, _UNIQUE = "ResourceSparseApply", "Unique"
_UPDATES = frozenset(_PREFIX + name for name in FORMULAS)
_SCATTERS = frozenset(f"ResourceScatter{kind}" for kind in ("Add", "Sub", "Update"))


def rewrites(graph: tf.Graph) -> Rewrites:
    """What `graph_def.subgraph_def` is to make of sparse updates in `graph`."""
    return dict.fromkeys([*_UPDATES, _UNIQUE], functools.partial(_rewrite, Sources(graph)))


def is_lowered(op: tf.Operation) -> bool:
    """Whether `rewrites` replaces an op: a sparse update, or what finds its distinct ids."""
    if op.type in _UPDATES:
        return _is_distinct(op.inputs[_inputs(op.type).index("indices")])
    # Places are of 32 bits in `_distinct`, as TensorFlow's optimizers have them.
    return op.type == _UNIQUE and op.outputs[1].dtype == tf.int32 and _is_of_updates(op)


def _is_distinct(ids: tf.Tensor) -> bool:
    """Whether no id comes twice, for which TensorFlow would update a row twice."""
    while ids.op.type == "Identity":
        ids = ids.op.inputs[0]
    return bool(ids.op.type == _UNIQUE and ids.value_index == 0)


def _is_of_updates(op: tf.Operation) -> bool:
    """Whether distinct ids serve nothing but updates of the rows that they name."""
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


def _rewrite(sources: Sources, node: NodeDef) -> None:
    """Turns a node into the call of a function of the same inputs and outputs."""
    op = sources.find(node.name)
    if op is None or not is_lowered(op):
        return  # stays as it is, and XLA says that it does not know it
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
    """Name of a function, known to the runtime, that does what an op does."""

    def call(*inputs: tf.Tensor) -> Sequence[tf.Tensor]:
        if op_type == _UNIQUE:
            return _distinct(*inputs)
        _update(op_type, dict(zip(_inputs(op_type), inputs, strict=True)), dict(switches))
        return []

    described = [*(t.name for t in dtypes), *(f"{name}_{value}" for name, value in switches)]
    with eager.eager_mode():
        specs = [tf.TensorSpec([] if t == tf.resource else None, t) for t in dtypes]
        made: Any = functions.function(call)
        definition = made.get_concrete_function(*specs).function_def
        definition.signature.name = "_".join(["tpu_estimator_compat", op_type, *described])
        context.context().add_function_def(definition)
    return str(definition.signature.name)


def _inputs(op_type: str) -> list[str]:
    return [argument.name for argument in op_def_registry.get(op_type).input_arg]


def _distinct(ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The distinct ids, filled up with ids of no row, and the place of each id among them."""
    count = tf.size(ids)
    ordered, order = gen_xla_ops.xla_key_value_sort(ids, tf.range(count))
    is_new = tf.concat([[False], ordered[1:] != ordered[:-1]], 0)
    place = tf.cumsum(tf.cast(is_new, tf.int32))
    nowhere = tf.fill([count], ids.dtype.max)
    found = tf.tensor_scatter_nd_update(nowhere, place[:, None], ordered)
    return found, tf.scatter_nd(order[:, None], place, [count])


def _update(op_type: str, values: dict[str, tf.Tensor], switches: dict[str, bool]) -> None:
    """Updates rows of a variable and of its slots by the op's formula."""
    ids, dtype = values.pop("indices"), values["grad"].dtype
    handles = {name: value for name, value in values.items() if value.dtype == tf.resource}
    rows = {
        name: tf.raw_ops.ResourceGather(resource=handle, indices=ids, dtype=dtype)
        for name, handle in handles.items()
    }
    updated = FORMULAS[op_type.removeprefix(_PREFIX)]({**values, **rows, **switches})
    for name, new in updated.items():
        tf.raw_ops.ResourceScatterUpdate(resource=handles[name], indices=ids, updates=new)
