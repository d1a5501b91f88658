"""The three modes of a `model_fn`: TensorFlow's own class, which its export code compares with."""

from typing import Any

from tpu_estimator_compat.tf_internals import EstimatorModeKeys as ModeKeys

__all__ = ["ModeKeys", "check_mode"]


def check_mode(mode: Any) -> None:
    """Raises ValueError for an argument that is no mode."""
    modes = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]
    if mode not in modes:
        raise ValueError(f"mode must be one of {modes}, got {mode!r}.")
