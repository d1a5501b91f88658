"""The three modes of a `model_fn`: TensorFlow's own class, which its export code compares with."""

from tpu_estimator_compat.tf_internals import EstimatorModeKeys as ModeKeys

__all__ = ["ModeKeys"]
