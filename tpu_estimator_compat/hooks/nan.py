"""The estimator's own watch over the loss."""

import tensorflow as tf


class LossNanHook(tf.compat.v1.train.NanTensorHook):
    """Raises at a NaN in the loss, at which the inner loop ends by itself."""
