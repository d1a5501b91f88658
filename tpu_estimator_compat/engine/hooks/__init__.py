"""The outer loop: hooks and callbacks, and a schedule of when each next needs control."""

from tpu_estimator_compat.engine.hooks.keras_callbacks import HOOK_TYPES, split_hooks
from tpu_estimator_compat.engine.hooks.schedule import Schedule

__all__ = ["HOOK_TYPES", "Schedule", "split_hooks"]
