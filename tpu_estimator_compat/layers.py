"""`tf.layers`, which Keras 3 dropped: the TF1 layer functions and classes, as tf_keras keeps them.

Variable names, UPDATE_OPS and defaults are those of TF1: `dense/kernel`, `conv2d/bias`,
`batch_normalization/moving_mean`.
"""

from tf_keras.api._v1.keras.__internal__.legacy.layers import *  # noqa: F403

from tpu_estimator_compat.batch_normalization import BatchNormalization  # noqa: F401
