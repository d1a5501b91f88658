"""The outer loop: who listens to training, and when each listener next needs control."""

from tpu_estimator_compat.callbacks.pacing import Pacer

__all__ = ["Pacer"]
