"""`tf.estimator.experimental`, as far as it is provided."""

from tpu_estimator_compat.export.receivers import build_raw_supervised_input_receiver_fn

__all__ = ["build_raw_supervised_input_receiver_fn"]
