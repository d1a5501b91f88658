"""`tf.contrib.feature_column`: input of a recurrent network from sequence features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.feature_column import feature_column, feature_column_v2

_KINDS = (feature_column._SequenceDenseColumn, feature_column_v2.SequenceDenseColumn)


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: list[str] | None = None,
    trainable: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Concatenated columns, [batch, longest sequence, depth], and lengths [batch].

    Columns are `sequence_numeric_column`s, or `embedding_column`s and `indicator_column`s of
    `sequence_categorical_column_with_*`.
    """
    columns = _checked(feature_columns)
    caches = (
        feature_column._LazyBuilder(dict(features)),
        feature_column_v2.FeatureTransformationCache(dict(features)),
    )
    with tf.variable_scope(None, "sequence_input_layer", values=list(features.values())):
        pairs = [_sequence_of(column, caches, weight_collections, trainable) for column in columns]
        values, lengths = zip(*pairs, strict=True)
        return tf.concat(values, -1), _the_same(lengths)


def _checked(columns: Any) -> list[Any]:
    # A column is also a tuple.
    listed = [columns] if isinstance(columns, _KINDS) else list(columns)
    if not listed:
        raise ValueError("feature_columns must not be empty.")
    for column in listed:
        if not isinstance(column, _KINDS):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
                "sequence_categorical_column with an embedding_column or indicator_column. Given "
                f"(type {type(column)}): {column}"
            )
    names = [column.name for column in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Duplicate feature column name found for columns: {twice}")
    return sorted(listed, key=lambda column: column.name)


def _sequence_of(
    column: Any, caches: tuple[Any, Any], collections: list[str] | None, trainable: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    of_v1, of_v2 = caches
    if isinstance(column, feature_column._SequenceDenseColumn):
        with tf.variable_scope(None, column._var_scope_name):
            pair = column._get_sequence_dense_tensor(of_v1, collections, trainable)
        depth = column._variable_shape.num_elements()
    else:  # numeric columns have no variables
        with tf.variable_scope(None, column.name):
            pair = column.get_sequence_dense_tensor(of_v2, None)
        depth = column.variable_shape.num_elements()
    values, lengths = pair
    shape = tf.shape(values)
    return tf.reshape(values, [shape[0], shape[1], depth]), lengths


def _the_same(lengths: tuple[tf.Tensor, ...]) -> tf.Tensor:
    first, *others = lengths
    if not others:
        return first
    with tf.control_dependencies([tf.assert_equal(first, other) for other in others]):
        return tf.identity(first)


__all__ = ["sequence_input_layer"]
