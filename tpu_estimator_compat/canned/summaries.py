"""Summaries that canned models write of their layers and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

summary = tf.compat.v1.summary


def of_layer(value: tf.Tensor, tag: str) -> None:
    """A layer's activation: its histogram, and how much of it is zero."""
    summary.scalar(f"{tag}/fraction_of_zero_values", tf.math.zero_fraction(value))
    summary.histogram(f"{tag}/activation", value)


def of_linear_model(bias: tf.Tensor, weights: Sequence[Any]) -> None:
    """A linear model's bias, and how much of its weights is zero.

    Args:
      bias: of one unit a scalar.
      weights: variables, or parts of them.
    """
    (summary.histogram if bias.shape.rank else summary.scalar)("bias", bias)
    summary.scalar("fraction_of_zero_weights", _fraction_of_zeros(weights))


def _fraction_of_zeros(weights: Sequence[Any]) -> tf.Tensor:
    sizes = [weight.shape.num_elements() for weight in weights]
    zeros = [tf.math.zero_fraction(w) * s for w, s in zip(weights, sizes, strict=True) if s]
    return tf.math.add_n(zeros) / sum(sizes)
