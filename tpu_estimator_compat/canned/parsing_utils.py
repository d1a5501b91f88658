"""What `tf.io.parse_example` needs for the columns, the label and the weight of a canned model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from tensorflow.python.feature_column.feature_column_v2 import NumericColumn


def classifier_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: tf.DType = tf.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """The features of a classifier's examples, for `tf.io.parse_example`.

    Args:
      feature_columns: of the model.
      label_key: the label's name.
      label_dtype: an integer one, or a string.
      label_default: of examples without a label; None to refuse them.
      weight_column: name, or numeric column, of the examples' weights.

    Raises:
      ValueError: the label or the weight is a feature, or the weight's column is not numeric.
    """
    make = tf.compat.v1.feature_column.make_parse_example_spec
    label = tf.io.FixedLenFeature((1,), label_dtype, label_default)
    return _with_label(make, feature_columns, label_key, label, weight_column)


def classifier_parse_example_spec_v2(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: tf.DType = tf.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """TensorFlow 2's `classifier_parse_example_spec`: columns of TensorFlow 2 alone."""
    make = tf.feature_column.make_parse_example_spec
    label = tf.io.FixedLenFeature((1,), label_dtype, label_default)
    return _with_label(make, feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: tf.DType = tf.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """The features of a regression's examples, for `tf.io.parse_example`.

    Args:
      label_dimension: how many numbers a label has. The others are those of
        `classifier_parse_example_spec`.
    """
    make = tf.compat.v1.feature_column.make_parse_example_spec
    label = tf.io.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_label(make, feature_columns, label_key, label, weight_column)


def regressor_parse_example_spec_v2(
    feature_columns: Iterable[Any],
    label_key: str,
    label_dtype: tf.DType = tf.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """TensorFlow 2's `regressor_parse_example_spec`: columns of TensorFlow 2 alone."""
    make = tf.feature_column.make_parse_example_spec
    label = tf.io.FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_label(make, feature_columns, label_key, label, weight_column)


def _with_label(
    make: Callable[..., dict[str, Any]],
    feature_columns: Iterable[Any],
    label_key: str,
    label: Any,
    weight_column: Any,
) -> dict[str, Any]:
    spec = make(feature_columns)
    if label_key in spec:
        raise ValueError(
            f"label should not be used as feature. label_key: {label_key}, features: {spec.keys()}"
        )
    spec[label_key] = label
    if weight_column is None:
        return spec
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column)
    if not isinstance(weight_column, NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. Given type: "
            f"{type(weight_column)} value: {weight_column}"
        )
    if weight_column.key in spec:
        raise ValueError(
            f"weight_column should not be used as feature. weight_column: {weight_column.key}, "
            f"features: {spec.keys()}"
        )
    return spec | weight_column.parse_example_spec
