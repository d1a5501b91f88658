"""TF1 checkpoints as files: which there are, what is in them, what cannot be read."""

from tpu_estimator_compat.engine.checkpoint.state import (
    CheckpointSource,
    check_available,
    check_writable,
    global_step_in,
    latest,
    read_variables,
)

__all__ = [
    "CheckpointSource",
    "check_available",
    "check_writable",
    "global_step_in",
    "latest",
    "read_variables",
]
