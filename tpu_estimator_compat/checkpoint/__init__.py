"""TF1 checkpoints: restoring a session from them, and what is in them."""

from tpu_estimator_compat.checkpoint.session_creator import StepSessionCreator
from tpu_estimator_compat.checkpoint.state import check_available, global_step_in, latest

__all__ = ["StepSessionCreator", "check_available", "global_step_in", "latest"]
