"""Checks of what heads are made with, in the original's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.util import function_utils

Number: TypeAlias = Any  # int, or a scalar tensor


def checked_vocabulary(
    vocabulary: Sequence[str] | None, error: type[Exception] = ValueError
) -> Sequence[str] | None:
    """A label vocabulary, if it is a list or a tuple; None is fine.

    Raises:
      error: it is neither.
    """
    if vocabulary is not None and not isinstance(vocabulary, list | tuple):
        raise error(f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}")
    return vocabulary


def check_vocabulary_size(vocabulary: Sequence[str] | None, n_classes: Number) -> None:
    """Refuses a vocabulary that has not a label for each class.

    Raises:
      ValueError: it has more or fewer.
    """
    if vocabulary is not None and len(vocabulary) != n_classes:
        raise ValueError(
            '"label_vocabulary" does not have "n_classes" items. '
            f"len(label_vocabulary)={len(vocabulary)}, n_classes={n_classes}, "
            f"label_vocabulary={vocabulary}"
        )


def checked_thresholds(thresholds: Iterable[float] | None) -> tuple[float, ...]:
    """Thresholds of probabilities, as a tuple.

    Raises:
      ValueError: one is not between 0 and 1.
    """
    thresholds = tuple(thresholds or ())
    if any(threshold <= 0.0 or threshold >= 1.0 for threshold in thresholds):
        raise ValueError(f"thresholds not in (0, 1): {(thresholds,)}.")
    return thresholds


def check_reduction(reduction: str, kinds: Any) -> None:
    """Refuses a `loss_reduction` that is none of `kinds`, or that reduces nothing.

    Raises:
      ValueError: it is one of these.
    """
    if reduction not in kinds.all() or reduction == kinds.NONE:
        raise ValueError(
            f"Invalid loss_reduction: {reduction}. See `tf.losses.Reduction` for valid options."
        )


def check_loss_fn(loss_fn: Callable[..., tf.Tensor] | None, optional: Iterable[str]) -> None:
    """Refuses a `loss_fn` that has not the arguments `labels` and `logits`, or has unknown ones.

    Args:
      loss_fn: the function; None is fine.
      optional: what it may take besides.

    Raises:
      ValueError: its arguments are others.
    """
    if loss_fn is None:
        return
    names = function_utils.fn_args(loss_fn)
    for required in ("labels", "logits"):
        if required not in names:
            raise ValueError(f"loss_fn must contain argument: {required}. Given arguments: {names}")
    if unknown := sorted({*names} - {"labels", "logits", *optional}):
        raise ValueError(f"loss_fn has unexpected args: {unknown}")


def checked_n_classes(n_classes: Number | None) -> Number:
    """A number of classes for which one logit is not enough; tensors are checked when they run.

    Raises:
      ValueError: it is None, or less than 3.
    """
    if n_classes is None:
        raise ValueError("n_classes cannot be None")
    if isinstance(n_classes, int):
        if n_classes <= 2:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        return n_classes
    message = "n_classes must be greater than 2"
    greater = tf.compat.v1.debugging.assert_greater(n_classes, 2, message=message)
    with tf.control_dependencies([greater] if greater is not None else []):
        return tf.identity(n_classes)
