"""TF1 checkpoints: saving and restoring a session, and what is in them."""

from tpu_estimator_compat.checkpoint.saver_hook import SaverHook
from tpu_estimator_compat.checkpoint.session_creator import StepSessionCreator
from tpu_estimator_compat.checkpoint.state import (
    check_available,
    global_step_in,
    latest,
    read_variables,
    restore_newest,
)

__all__ = [
    "SaverHook",
    "StepSessionCreator",
    "check_available",
    "global_step_in",
    "latest",
    "read_variables",
    "restore_newest",
]
