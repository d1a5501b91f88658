"""What heads and canned models of TensorFlow 2 minimise where several replicas share a batch."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def share_of_loss(loss: tf.Tensor, loss_reduction: Any) -> tf.Tensor:
    """A replica's share of a loss: Keras' optimizers add up the replicas' gradients.

    Args:
      loss: of the replica's own examples.
      loss_reduction: how it was made; a sum is taken as it is.
    """
    import tf_keras
    from tf_keras.src.utils import losses_utils

    if loss_reduction != tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE:
        return loss
    # A captured graph knows no strategy: capture puts the number of its replicas into this.
    return losses_utils.scale_loss_for_distribution(loss)
