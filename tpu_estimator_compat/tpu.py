"""The names of `tf.contrib.tpu`; the same as in `tpu_estimator_compat.estimator.tpu`."""

from tpu_estimator_compat.estimator.tpu import *  # noqa: F403
from tpu_estimator_compat.estimator.tpu import __all__ as __all__
