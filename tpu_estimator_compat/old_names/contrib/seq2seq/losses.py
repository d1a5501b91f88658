"""The cross-entropy loss of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def sequence_loss(
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., tf.Tensor] | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """The weighted cross entropy of sequences.

    Logits are [batch, time, classes]; targets and weights are [batch, time]. An average is a sum
    divided by the sum of the weights. If neither dimension is averaged, `sum_over_*` divides by the
    number of nonzero weights.
    """
    _check_ranks(logits, targets, weights)
    for average, added, what in (
        (average_across_timesteps, sum_over_timesteps, "timesteps"),
        (average_across_batch, sum_over_batch, "batch"),
    ):
        if average and added:
            raise ValueError(f"average_across_{what} and sum_over_{what} cannot be set to True.")
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        losses = _cross_entropy(logits, targets, softmax_loss_function) * weights
        batch, time = average_across_batch, average_across_timesteps
        averaged = batch or time
        if not averaged:
            batch, time = sum_over_batch, sum_over_timesteps
        axes = [axis for axis, wanted in ((0, batch), (1, time)) if wanted]
        if not axes:
            return losses
        if averaged:
            over = tf.reduce_sum(weights, axis=axes)
        else:
            over = tf.cast(tf.count_nonzero(weights, axis=axes), losses.dtype)
        return tf.div_no_nan(tf.reduce_sum(losses, axis=axes), over)


def _cross_entropy(
    logits: tf.Tensor, targets: tf.Tensor, function: Callable[..., tf.Tensor] | None
) -> Any:
    flat = tf.reshape(logits, [-1, tf.shape(logits)[2]])
    flat.set_shape([None, logits.shape[2]])
    function = function or tf.nn.sparse_softmax_cross_entropy_with_logits
    losses = function(labels=tf.reshape(targets, [-1]), logits=flat)
    return tf.reshape(losses, tf.shape(logits)[:2])


def _check_ranks(logits: tf.Tensor, targets: tf.Tensor, weights: tf.Tensor) -> None:
    for tensor, rank, what in (
        (logits, 3, "Logits must be a [batch_size x sequence_length x logits] tensor"),
        (targets, 2, "Targets must be a [batch_size x sequence_length] tensor"),
        (weights, 2, "Weights must be a [batch_size x sequence_length] tensor"),
    ):
        if len(tensor.shape) != rank:
            raise ValueError(what)
