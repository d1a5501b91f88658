"""Lookups of ids in a table, and the gradients of the rows found.

The ops run on the host only, because the number of ids varies.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.embedding.tables import FeatureConfig, TableConfig
from tpu_estimator_compat.engine.state.shards import Shard

Ids = Any  # a tensor or a SparseTensor of integers
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.\-]")  # characters that operation names cannot have
Size = Any  # an int, or a scalar int32 tensor if unknown before the step


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """The ids of one feature of one batch, in a flat list.

    Attributes:
      ids: int64 of shape [n].
      outputs: int64 of shape [n]: for each id, the activation's row that it adds to. Activations of
        sequences have `batch * max_sequence_length` rows. None if each row has exactly one id, in
        order.
      weights: float32 of shape [n]: factors of the table's rows; None for 1.
      shape: shape of the activation; ints for known dimensions.
      size: int64 of shape [1]: the number of rows of the activation; None without `outputs`.
      count: int32 of shape [1]: the number of ids; None without `outputs`.
    """

    ids: tf.Tensor
    outputs: tf.Tensor | None
    weights: tf.Tensor | None
    shape: Sequence[Size]
    size: tf.Tensor | None = None
    count: tf.Tensor | None = None

    def rows(self, table: tf.Variable, name: str) -> tf.Tensor:
        """Gathers rows, float32 [n, dimension], in an op `name` that fails for unknown ids."""
        return tf.raw_ops.ResourceGather(
            resource=table.handle,
            indices=self.ids,
            dtype=tf.float32,
            validate_indices=True,
            name=_NOT_IN_NAMES.sub("_", name),
        )

    def checked(self, rows: int, name: str, message: str) -> Occurrences:
        """The same ids, after an op `name` that fails with `message` for ids outside [0, rows)."""
        known = tf.logical_and(self.ids >= 0, self.ids < rows)
        check = tf.raw_ops.Assert(
            condition=tf.reduce_all(known),
            data=[message, f"They are not in [0, {rows}):", tf.boolean_mask(self.ids, ~known)],
            name=_NOT_IN_NAMES.sub("_", name),
        )
        with tf.control_dependencies([check]):
            return dataclasses.replace(self, ids=tf.identity(self.ids))

    def held_by(self, shard: Shard) -> Occurrences:
        """The ids whose rows a shard holds, relative to its first row."""
        held = tf.logical_and(self.ids >= shard.first, self.ids < shard.first + shard.rows)
        places = tf.where(held)[:, 0]
        outputs, weights = self.outputs, self.weights
        return dataclasses.replace(
            self,
            ids=tf.gather(self.ids, places) - shard.first,
            outputs=places if outputs is None else tf.gather(outputs, places),
            weights=None if weights is None else tf.gather(weights, places),
        )

    def after(self, rows: tf.Tensor) -> Occurrences:
        """The same ids, used only after `rows`, so that its error for an unknown id comes first."""
        with tf.control_dependencies([rows]):
            return dataclasses.replace(self, ids=tf.identity(self.ids))

    def activation(self, rows: tf.Tensor) -> tf.Tensor:
        """The activations: float32 of `shape`; zeros for an example without ids."""
        found = rows
        if self.outputs is not None:
            if self.weights is not None:
                found *= self.weights[:, tf.newaxis]
            rows = _product(self.shape[:-1])
            found = tf.math.unsorted_segment_sum(found, self.outputs, rows)
        return found if len(self.shape) == 2 else tf.reshape(found, self.shape)


def occurrences(
    name: str, table: TableConfig, key: str, feature: FeatureConfig, ids: Ids, weights: Any
) -> Occurrences:
    """The ids of a feature, flattened.

    Dense ids of shape [batch], and all dense ids for a table without a combiner, are one per
    example or per position of a sequence. In other dense ids, 0 means no id, as on a TPU.

    Args:
      ids: integers: a tensor of shape [batch] or [batch, n], or a SparseTensor of such a shape.
      weights: a SparseTensor of the ids' shape; None for 1.
    """
    length = feature.max_sequence_length
    if not isinstance(ids, tf.SparseTensor):
        if ids.shape.rank == 1 or table.combiner is None:
            return _one_each(name, table, key, ids, length)
        ids = tf.sparse.from_dense(ids)
    where = f"feature {key}, which is looked up in table {name}"
    values, indices = tf.cast(ids.values, tf.int64), ids.indices
    coefficients = None if weights is None else _values_of(weights, ids, where)
    outputs, shape = indices[:, 0], [_rows(ids)]
    if length:
        place = indices[:, 1]
        kept = place < length
        values = tf.boolean_mask(values, kept)
        outputs = tf.boolean_mask(outputs * length + place, kept)
        if coefficients is not None:
            coefficients = tf.boolean_mask(coefficients, kept)
        shape.append(length)
    total = _product(shape)
    return Occurrences(
        values,
        outputs,
        _combined(table.combiner, coefficients, outputs, total),
        [*shape, table.dimension],
        tf.reshape(tf.cast(total, tf.int64), [1]),
        tf.shape(values),
    )


def check_rank(name: str, key: str, feature: FeatureConfig, ids: Ids) -> None:
    rank, sequence = ids.shape.rank, feature.max_sequence_length > 0
    if rank == 2 or (rank == 1 and not sequence):
        return
    wanted = "[batch, length]" if sequence else "[batch] or [batch, ids]"
    raise ValueError(
        f"The ids of feature {key!r}, which is looked up in table {name!r}, have shape {ids.shape}."
        f" Expected {wanted}."
    )


def row_gradients(gradient: tf.Tensor, found: Occurrences) -> tf.Tensor:
    """Gradients of each id's row, [n, dimension], from the activation's, [outputs, dimension]."""
    if found.outputs is None:
        return gradient
    gradients = tf.gather(gradient, found.outputs)
    return gradients if found.weights is None else gradients * found.weights[:, tf.newaxis]


def sequence_length(ids: Ids, longest: int) -> tf.Tensor:
    """The length of every example's sequence: int64 of shape [batch], at most `longest`."""
    if not isinstance(ids, tf.SparseTensor):
        ids = tf.sparse.from_dense(ids)
    ends = tf.math.unsorted_segment_max(ids.indices[:, 1] + 1, ids.indices[:, 0], _rows(ids))
    return tf.clip_by_value(
        ends, 0, longest
    )  # segment_max returns the least integer for an example without ids


def _rows(ids: Ids) -> Size:
    if ids.shape[0] is not None:
        return ids.shape[0]
    if isinstance(ids, tf.SparseTensor):
        return tf.cast(ids.dense_shape[0], tf.int32)
    return tf.shape(ids)[0]


def _product(sizes: Sequence[Size]) -> Size:
    return functools.reduce(operator.mul, sizes)


def _one_each(name: str, table: TableConfig, key: str, ids: tf.Tensor, length: int) -> Occurrences:
    """Lookup without a combiner: one output row per id."""
    if length and ids.shape[1] is not None and ids.shape[1] != length:
        wanted = [ids.shape[0], length]
        ids = ids[:, :length]
        if (ids.shape[1] or 0) < length:
            raise ValueError(
                f"Feature {key!r} has dense ids of shape {ids.shape}, and table {name!r} has no "
                f"combiner: expected {wanted}, as many places as max_sequence_length says. Pad "
                "them, or give a SparseTensor."
            )
    shape = [_rows(ids), length] if length else [_rows(ids)]
    if not length and ids.shape.rank == 2 and ids.shape[1] != 1:
        raise ValueError(
            f"Feature {key!r} has dense ids of shape {ids.shape}, but table {name!r} has no "
            "combiner for several ids of an example. Give TableConfig a combiner, or one id each."
        )
    flat = tf.reshape(tf.cast(ids, tf.int64), [-1])
    return Occurrences(flat, None, None, [*shape, table.dimension])


def _values_of(weights: tf.SparseTensor, ids: tf.SparseTensor, where: str) -> tf.Tensor:
    same = tf.debugging.assert_equal(
        tf.shape(weights.values),
        tf.shape(ids.values),
        message=f"The ids and the weights of {where}, are of different number.",
    )
    with tf.control_dependencies([same]):
        return tf.identity(tf.cast(weights.values, tf.float32))


def _combined(
    combiner: str | None, weights: tf.Tensor | None, outputs: tf.Tensor, total: tf.Tensor
) -> tf.Tensor | None:
    """The weight of each id, as in `tf.nn.embedding_lookup_sparse`."""
    if combiner in ("sum", None):
        return weights
    if weights is None:
        weights = tf.ones(tf.shape(outputs), tf.float32)
    squares = weights if combiner == "mean" else tf.square(weights)
    sums = tf.math.unsorted_segment_sum(squares, outputs, total)
    divisor = sums if combiner == "mean" else tf.sqrt(sums)
    return tf.math.divide_no_nan(weights, tf.gather(divisor, outputs))
