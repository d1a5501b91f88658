"""The outer loop: who listens to training, and when each listener next needs control."""

from tpu_estimator_compat.engine.hooks.keras_callbacks import HOOK_TYPES, split_hooks
from tpu_estimator_compat.engine.hooks.pacing import Pacer, cadence_for

__all__ = ["HOOK_TYPES", "Pacer", "cadence_for", "split_hooks"]
