"""What canned models of TensorFlow 2 minimise where several replicas share a batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def share_of_loss(loss: tf.Tensor, loss_reduction: Any) -> tf.Tensor:
    """A replica's share of a loss: replicas' gradients are added up.

    Args:
      loss: of the replica's own examples.
      loss_reduction: how it was made; a sum is taken as it is.
    """
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if loss_reduction == tf.losses.Reduction.SUM_OVER_BATCH_SIZE and replicas > 1:
        return loss * (1.0 / replicas)
    return loss
