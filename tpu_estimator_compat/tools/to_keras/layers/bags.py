"""Lookups of several rows of a table at once, by sparse numbers that were dense before.

Feature columns, and `embedding_lookup_sparse` of what is not a number for "none", drop the absent
numbers of a matrix. In Keras, the lookup takes the matrix, and a mask drops the absent ones' rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.graph import Node, Value
from tpu_estimator_compat.tools.to_keras.layers import building as b
from tpu_estimator_compat.tools.to_keras.layers.building import Call, Variables, need
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found
from tpu_estimator_compat.tools.to_keras.reading import computed

_SUM, _MEAN, _ROOT = (f"SparseSegment{name}" for name in ("Sum", "Mean", "SqrtN"))


def bag(found: Found, _: Variables) -> Call:
    ids, table, root = found["ids"], found["embeddings"], found[NODES][0]
    need(ids.rank == 2, len(table.shape) == 2)
    name = root.name
    begin, end = (value.constant for value in b.node_of(found, "StridedSlice").inputs[1:3])
    need(begin is not None and end is not None and [*begin, *end] == [0, 0, 0, 1])
    # If not selected, a row without numbers is that of a default number.
    need("chosen" not in found or root.kind.startswith("Select"))
    if "absent" in found:
        ids = _mapped(found)
        mask = _mask(found, ids)
        safe = computed(lambda m, x: tf.where(m, x, tf.constant(0, x.dtype)), mask, ids, name=name)
    else:  # buckets of several numbers have rows of their own
        mask, columns, count = None, b.sizes(ids)[1], found["count"]
        need(columns and table.shape[0] == columns * count)
        first = np.arange(columns, dtype=ids.dtype) * np.array(count, ids.dtype)
        safe = ids if columns == 1 else computed(lambda x: x + first, ids, name=name)
    kind = b.node_of(found, _SUM, _MEAN, _ROOT).kind
    return Call(
        "layers.Embedding",
        [safe],
        list(table.shape),
        bound={"embeddings": table},
        after=lambda node: _combined(kind, node, (*b.sizes(safe), table.shape[-1]), mask),
    )


def _mapped(found: Found) -> Value:
    """The numbers that stand for a matrix, of all of its elements."""
    ids, values = found["ids"], found["values"]
    mapping: Node = values.node
    if mapping.kind == "GatherNd":
        matrix: Value = ids
        return matrix
    given = [ids if value is found["taken"] else value for value in mapping.inputs]
    made = Node(mapping.kind, f"{found[NODES][0].name}/{mapping.kind}", given, mapping.attrs)
    return made.output(b.sizes(ids), values.dtype)


def _mask(found: Found, ids: Value) -> Value:
    """Where a matrix has numbers that count."""
    name, present = found[NODES][0].name, b.node_of(found, "NotEqual").outputs[0]
    if "chosen" not in found:
        return present
    if ids is found["ids"] and found["absent"] < 0:
        return computed(lambda x: x >= 0, ids, name=name)
    return computed(lambda mask, x: tf.logical_and(mask, x >= 0), present, ids, name=name)


def _combined(kind: str, node: Node, shape: tuple[Any, ...], mask: Value | None) -> Value:
    columns, table = shape[1], node.layer.bound["embeddings"]
    rows = node.output(shape, table.weights[0].dtype)

    def combined(rows: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        number = tf.constant(columns or 0, rows.dtype)
        if mask is not None:
            ones = tf.expand_dims(tf.cast(mask, rows.dtype), -1)
            rows = rows * ones
            number = tf.maximum(tf.reduce_sum(ones, 1), tf.constant(1, rows.dtype))
        total = tf.reduce_sum(rows, 1)
        if kind == _SUM or columns == 1:
            return total
        return total / (tf.sqrt(number) if kind == _ROOT else number)

    return computed(combined, rows, *([] if mask is None else [mask]), name=node.name)


def dense(found: Found, _: Variables) -> Value:
    """A matrix that was made sparse and dense again, with another number for the absent ones."""
    given = [b.node_of(found, "NotEqual").outputs[0], _mapped(found)]
    fill = np.array(found["fill"], found[NODES][0].outputs[0].dtype)
    return computed(lambda mask, x: tf.where(mask, x, fill), *given, name=found[NODES][0].name)


def found_in_table(found: Found, _: Variables) -> Call | Value:
    """The values in a table that the graph fills."""
    x, default, attrs = found["x"], found["default"], found["table"].node.attrs
    need("keys" in attrs)
    keys, values = attrs["keys"], attrs["values"]
    if keys.dtype.kind == "O":
        places = [*range(len(keys))]
        need(values.tolist() == places, default.constant is not None, default.constant == -1)
        words = [key.decode() for key in keys.tolist()]

        def placed(node: Node) -> Value:  # -1 for other words; that of Keras is one more
            return computed(lambda x: x - 1, node.output(b.sizes(x), "int64"), name=node.name)

        return Call("layers.StringLookup", [x], options={"vocabulary": words}, after=placed)
    need(values.dtype.kind != "O")

    def look_up(x: tf.Tensor, default: tf.Tensor) -> tf.Tensor:
        same = tf.equal(tf.expand_dims(x, -1), keys)
        place = tf.argmax(tf.cast(same, tf.int32), -1)
        counted = values.dtype == np.int64 and np.array_equal(values, range(len(values)))
        value = place if counted else tf.gather(values, place)
        return tf.where(tf.reduce_any(same, -1), value, default)

    return computed(look_up, x, default, name=found[NODES][0].name)
