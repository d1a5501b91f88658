"""Lookups of several rows of a table at once, by sparse numbers that were dense before.

Feature columns, and `embedding_lookup_sparse` of what is not a number for "none", drop the absent
numbers of a matrix. In Keras, the lookup takes the matrix, and a mask drops the absent ones' rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import Node, Value, constant
from tpu_estimator_compat.tools.to_keras.layers.building import (
    Call,
    Variables,
    need,
    node_of,
    sizes,
)
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found

_SUM, _MEAN, _ROOT = (f"SparseSegment{name}" for name in ("Sum", "Mean", "SqrtN"))


def bag(found: Found, _: Variables) -> Call:
    ids, table, root = found["ids"], found["embeddings"], found[NODES][0]
    need(ids.rank == 2, len(table.shape) == 2)
    name = root.name
    begin, end = (value.constant for value in node_of(found, "StridedSlice").inputs[1:3])
    need(begin is not None and end is not None and [*begin, *end] == [0, 0, 0, 1])
    # If not selected, a row without numbers is that of a default number.
    need("chosen" not in found or root.kind.startswith("Select"))
    if "absent" in found:
        ids = _mapped(found, name)
        mask = _mask(found, name, ids)
        safe = _made("SelectV2", name, [mask, ids, _like(0, ids)], sizes(ids), ids.dtype)
    else:  # buckets of several numbers have rows of their own
        mask, columns, count = None, sizes(ids)[1], found["count"]
        need(columns and table.shape[0] == columns * count)
        first = constant(np.arange(columns, dtype=ids.dtype) * np.array(count, ids.dtype))
        safe = ids if columns == 1 else _made("AddV2", name, [ids, first], sizes(ids), ids.dtype)
    kind = node_of(found, _SUM, _MEAN, _ROOT).kind
    return Call(
        "layers.Embedding",
        [safe],
        list(table.shape),
        bound={"embeddings": table},
        after=lambda node: _combined(kind, node, (*sizes(safe), table.shape[-1]), mask),
    )


def _mapped(found: Found, name: str) -> Value:
    """The numbers that stand for a matrix, of all of its elements."""
    ids, mapping = found["ids"], found["values"].node
    if mapping.kind == "GatherNd":
        matrix: Value = ids
        return matrix
    given = [ids if value is found["taken"] else value for value in mapping.inputs]
    return _made(mapping.kind, name, given, sizes(ids), found["values"].dtype, **mapping.attrs)


def _mask(found: Found, name: str, ids: Value) -> Value:
    """Where a matrix has numbers that count."""
    present = node_of(found, "NotEqual").outputs[0]
    if "chosen" not in found:
        return present
    counts = _made("GreaterEqual", name, [ids, _like(0, ids)], sizes(ids), "bool")
    if ids is found["ids"] and found["absent"] < 0:
        return counts
    return _made("LogicalAnd", name, [present, counts], sizes(ids), "bool")


def _combined(kind: str, node: Node, shape: tuple[Any, ...], mask: Value | None) -> Value:
    name, (batch, columns, units) = node.name, shape
    rows = node.output(shape, node.layer.bound["embeddings"].weights[0].dtype)
    axis = constant(np.int32(1))
    number: Value = constant(np.array(columns or 0, rows.dtype))
    if mask is not None:
        ones = _made("Cast", name, [mask], sizes(mask), rows.dtype, DstT=rows.dtype, SrcT="bool")
        last = constant(np.int32(-1))
        ones = _made("ExpandDims", name, [ones, last], (*sizes(mask), 1), rows.dtype)
        rows = _made("Mul", name, [rows, ones], sizes(rows), rows.dtype)
        number = _made("Sum", name, [ones, axis], (batch, 1), rows.dtype, keep_dims=False)
        number = _made("Maximum", name, [number, _like(1, rows)], (batch, 1), rows.dtype)
    total = _made("Sum", name, [rows, axis], (batch, units), rows.dtype, keep_dims=False)
    if kind == _SUM or columns == 1:
        return total
    if kind == _ROOT:
        number = _made("Sqrt", name, [number], sizes(number), rows.dtype)
    return _made("RealDiv", name, [total, number], (batch, units), rows.dtype)


def dense(found: Found, _: Variables) -> Value:
    """A matrix that was made sparse and dense again, with another number for the absent ones."""
    name, made = found[NODES][0].name, found[NODES][0].outputs[0]
    values = _mapped(found, name)
    given = [node_of(found, "NotEqual").outputs[0], values, _like(found["fill"], made)]
    return _made("SelectV2", name, given, sizes(values), made.dtype)


def found_in_table(found: Found, _: Variables) -> Call | Value:
    """The values in a table that the graph fills."""
    x, attrs, name = found["x"], found["table"].node.attrs, found[NODES][0].name
    need("keys" in attrs)
    keys, values = attrs["keys"], attrs["values"]
    if keys.dtype.kind == "O":
        default, places = found["default"].constant, [*range(len(keys))]
        need(values.tolist() == places, default is not None and default.tolist() == -1)
        words = [key.decode() for key in keys.tolist()]
        return Call("layers.StringLookup", [x], options={"vocabulary": words}, after=_numbered)
    need(values.dtype.kind != "O")
    shape, last = sizes(x), constant(np.int32(-1))
    each = _made("ExpandDims", name, [x, last], (*shape, 1), x.dtype)
    same = _made("Equal", name, [each, constant(keys)], (*shape, len(keys)), "bool")
    known = _made("Any", name, [same, last], shape, "bool", keep_dims=False)
    numbers = _made("Cast", name, [same], sizes(same), "int32", DstT="int32", SrcT="bool")
    place = _made("ArgMax", name, [numbers, last], shape, "int64", output_type="int64")
    given = [constant(values), place, constant(np.int32(0))]
    value = _made("GatherV2", name, given, shape, found["default"].dtype, batch_dims=0)
    return _made("SelectV2", name, [known, value, found["default"]], shape, value.dtype)


def _numbered(node: Node) -> Value:
    """A place among words, -1 for others; that of Keras is one more."""
    x = node.output(sizes(node.inputs[0]), "int64")
    return _made("Sub", node.name, [x, _like(1, x)], sizes(x), x.dtype)


def _like(number: Any, value: Value) -> Value:
    return constant(np.array(number, value.dtype))


def _made(
    kind: str, name: str, inputs: list[Value], shape: tuple[Any, ...], dtype: str, **attrs: Any
) -> Value:
    return Node(kind, f"{name}/{kind}", inputs, attrs).output(shape, dtype)
