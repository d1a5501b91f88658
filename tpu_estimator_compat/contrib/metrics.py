"""`tf.contrib.metrics`: those of tf_slim, and sets."""

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.contrib.slim.metrics import *  # noqa: F403

set_difference = tf.sets.difference
set_intersection = tf.sets.intersection
set_size = tf.sets.size
set_union = tf.sets.union


def confusion_matrix(
    labels, predictions, num_classes=None, dtype=tf.int32, name=None, weights=None
) -> tf.Tensor:
    """`tf.math.confusion_matrix`, a tensor [classes, classes] with a row per label."""
    return tf.math.confusion_matrix(labels, predictions, num_classes, weights, dtype, name)
