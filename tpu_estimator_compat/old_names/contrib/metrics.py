"""`tf.contrib.metrics`: tf_slim's metrics, and set operations."""

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib.slim.metrics import *  # noqa: F403

confusion_matrix = tf.math.confusion_matrix
set_difference = tf.sets.difference
set_intersection = tf.sets.intersection
set_size = tf.sets.size
set_union = tf.sets.union
