"""The three modes of a `model_fn`: TensorFlow's own class, which its export code compares with."""

from tensorflow.python.saved_model.model_utils.mode_keys import EstimatorModeKeys as ModeKeys

__all__ = ["ModeKeys"]
