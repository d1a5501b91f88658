"""Labels, logits, weights and losses as heads take them: checked, and brought to one shape.

`D` below stands for the dimensions of a batch, `[D0, D1, ... DN]`: most often `[batch_size]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.feature_column import feature_column, feature_column_v2
from tensorflow.python.util import function_utils

from tpu_estimator_compat.canned.heads.arguments import Number


def checked_logits(logits: Any, dimension: Number) -> tf.Tensor:
    """Logits as float32, of shape `[*D, dimension]`.

    Raises:
      ValueError: their last dimension is another, or there is but one. Where only the step knows,
        it raises `InvalidArgumentError`.
    """
    logits = tf.cast(logits, tf.float32)
    shape = logits.shape
    message = f"logits shape must be [D0, D1, ... DN, logits_dimension={dimension}]"
    if shape.rank is not None and shape.rank < 2:
        raise ValueError(f"{message}, got {shape}.")
    if shape.rank is not None and shape[-1] is not None and isinstance(dimension, int):
        if shape[-1] != dimension:
            raise ValueError(f"{message}, got {shape}.")
        return logits
    return _expect(dimension, tf.shape(logits)[-1], logits, message, "logits")


def checked_labels(labels: Any, logits: tf.Tensor, dimension: Number) -> tf.Tensor:
    """Labels of shape `[*D, dimension]`, where logits are `[*D, any]`.

    Those of shape `[*D]` get a last dimension of 1.

    Raises:
      ValueError: there are none, they are sparse, or of another shape. Where only the step knows
        their shape, it raises `InvalidArgumentError`.
    """
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check "
            "that your data contains your label feature. Check that your input_fn properly parses "
            "and returns labels."
        )
    labels = tf.compat.v1.convert_to_tensor_or_sparse_tensor(labels)
    if isinstance(labels, tf.SparseTensor):
        raise ValueError(
            "SparseTensor labels are not supported. Labels must be a Tensor of shape "
            f"[D0, D1, ..., DN, {dimension}], e.g. [batch_size, {dimension}]. Suggested Fix (1): "
            "Check the label feature in your data. Each example must contain "
            f"{dimension} value(s). If not, your choice of label was probably incorrect. "
            "Suggested Fix (2): In your input_fn, use tf.sparse.to_dense() to turn labels into a "
            "Tensor."
        )
    if _lacks_last_dimension(labels, logits):
        labels = tf.expand_dims(labels, -1)
    message = (
        f"labels shape must be [D0, D1, ... DN, {dimension}]. Suggested Fix: check your n_classes "
        "argument to the estimator and/or the shape of your label."
    )
    _check_label_dimension(labels.shape, dimension, message)
    expected = tf.concat([tf.shape(logits)[:-1], [dimension]], axis=0)
    return _expect(expected, tf.shape(labels), labels, message, "labels")


def _check_label_dimension(shape: tf.TensorShape, dimension: Number, message: str) -> None:
    if shape.rank is None:
        return
    if shape.rank < 2:
        raise ValueError(f"{message} Received shape {shape}.")
    if isinstance(dimension, int) and shape[-1] not in (None, dimension):
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={dimension}.  Received "
            f"{shape[-1]}. Suggested Fix: If your classifier expects one-hot encoding label, check "
            "your n_classes argument to the estimator and/or the shape of your label. Otherwise, "
            "check the shape of your label."
        )


def checked_range(labels: tf.Tensor, n_classes: Number, message: str | None = None) -> tf.Tensor:
    """Labels from 0 to `n_classes - 1`; the step raises `InvalidArgumentError` for others.

    Raises:
      ValueError: eagerly, for others.
    """
    debugging = tf.compat.v1.debugging
    greatest = tf.cast(n_classes, labels.dtype) - 1
    try:
        checks = [
            debugging.assert_less_equal(
                labels, greatest, message=message or "Labels must be <= n_classes - 1"
            ),
            debugging.assert_non_negative(labels, message=message or "Labels must be >= 0"),
        ]
    except tf.errors.InvalidArgumentError as error:
        if not tf.executing_eagerly():
            raise
        raise ValueError(error.message) from error
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(labels)


def weights(
    features: Mapping[str, Any] | None,
    weight_column: Any,
    logits: tf.Tensor,
    *,
    per_logit: bool = False,
) -> float | tf.Tensor:
    """Weights of examples.

    Args:
      features: what the column is taken of.
      weight_column: a key of `features`, or a dense column; None for 1.0.
      logits: of shape `[*D, dimension]`.
      per_logit: whether each logit may have a weight of its own.

    Returns:
      1.0, or float32 weights of shape `[*D, 1]`, or perhaps `[*D, dimension]`.

    Raises:
      TypeError: `weight_column` is neither of them.
      ValueError: weights are no numbers, or their shape is another. Where only the step knows it,
        it raises `InvalidArgumentError`.
    """
    if weight_column is None:
        return 1.0
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column, shape=(1,))
    if not isinstance(weight_column, feature_column_v2.DenseColumn | feature_column._DenseColumn):
        raise TypeError(
            "Weight column must be either a string or _DenseColumn. "
            f"Given type: {type(weight_column)}."
        )
    values = _values_of(weight_column, features or {})
    if not (values.dtype.is_floating or values.dtype.is_integer):
        raise ValueError(f"Weight column should be castable to float. Given dtype: {values.dtype}")
    values = tf.cast(values, tf.float32)
    message = "weights shape must be [D0, D1, ... DN] or [D0, D1, ... DN, 1]"
    if per_logit:
        message = (
            "weights shape must be [D0, D1, ... DN], [D0, D1, ... DN, 1] or "
            "[D0, D1, ... DN, logits_dimension]"
        )
    if _lacks_last_dimension(values, logits):
        values = tf.expand_dims(values, -1)
    expected = tf.concat([tf.shape(logits)[:-1], [1]], axis=0)
    if per_logit and values.shape.rank is not None and values.shape[-1] not in (None, 1):
        expected = tf.shape(logits)
    return _expect(expected, tf.shape(values), values, message, "weights")


def _values_of(column: Any, features: Mapping[str, Any]) -> tf.Tensor:
    if isinstance(column, feature_column_v2.DenseColumn):
        cache = feature_column_v2.FeatureTransformationCache(features)
        return column.get_dense_tensor(cache, None)
    return column._get_dense_tensor(feature_column._LazyBuilder(features))


def custom_loss(
    loss_fn: Callable[..., tf.Tensor],
    labels: tf.Tensor,
    logits: tf.Tensor,
    features: Any,
    dimension: Number = 1,
) -> tf.Tensor:
    """What a user's `loss_fn` makes of labels and logits, before weights.

    Returns:
      Losses of shape `[*D, dimension]`.

    Raises:
      ValueError: their shape is another. Where only the step knows it, it raises
        `InvalidArgumentError`.
    """
    more = {"features": features} if "features" in function_utils.fn_args(loss_fn) else {}
    loss = loss_fn(labels=labels, logits=logits, **more)
    expected = tf.concat([tf.shape(logits)[:-1], [dimension]], axis=0)
    message = f"loss_fn must return Tensor of shape [D0, D1, ... DN, {dimension}]. "
    return _expect(expected, tf.shape(loss), loss, message, "loss")


def _lacks_last_dimension(values: tf.Tensor, logits: tf.Tensor) -> bool:
    ranks = values.shape.rank, logits.shape.rank
    return None not in ranks and ranks[0] == ranks[1] - 1


def _expect(expected: Any, given: Any, value: tf.Tensor, message: str, what: str) -> tf.Tensor:
    """`value`, once `given`, of its shape, has been found to be what is expected.

    Raises:
      ValueError: it is not, and that is known already.
    """
    wanted, found = tf.get_static_value(expected), tf.get_static_value(given)
    if wanted is not None and found is not None:
        if not np.array_equal(wanted, found):
            raise ValueError(f"{message} expected_{what}_shape: {wanted}. {what}_shape: {found}.")
        return value
    data = [f"expected_{what}_shape: ", expected, f"{what}_shape: ", given]
    equal = tf.compat.v1.debugging.assert_equal(expected, given, message=message, data=data)
    with tf.control_dependencies([equal]):
        return tf.identity(value)
