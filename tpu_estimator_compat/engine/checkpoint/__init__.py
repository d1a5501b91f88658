"""TF1 checkpoints as files: finds, reads, diagnoses and writes them."""

from tpu_estimator_compat.engine.checkpoint.state import (
    CheckpointSource,
    check_available,
    check_writable,
    global_step_in,
    latest,
    read_newest,
    read_variables,
    warn_if_older,
)
from tpu_estimator_compat.engine.checkpoint.training_lock import training_in

__all__ = [
    "CheckpointSource",
    "check_available",
    "check_writable",
    "global_step_in",
    "latest",
    "read_newest",
    "read_variables",
    "training_in",
    "warn_if_older",
]
