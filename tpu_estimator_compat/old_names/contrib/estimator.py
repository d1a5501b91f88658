"""`tf.contrib.estimator`: names that `tf.estimator` lacks."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow.compat.v1 as tf


class _ClippingOptimizer(tf.train.Optimizer):
    def __init__(self, optimizer: tf.train.Optimizer, clip_norm: float):
        super().__init__(use_locking=False, name=optimizer.get_name())
        self._optimizer = optimizer
        self._clip_norm = clip_norm

    compute_gradients = property(operator.attrgetter("_optimizer.compute_gradients"))
    get_slot = property(operator.attrgetter("_optimizer.get_slot"))
    get_slot_names = property(operator.attrgetter("_optimizer.get_slot_names"))
    variables = property(operator.attrgetter("_optimizer.variables"))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        clipped = [
            (None if grad is None else tf.clip_by_norm(grad, self._clip_norm), variable)
            for grad, variable in grads_and_vars
        ]
        return self._optimizer.apply_gradients(clipped, global_step, name)


def clip_gradients_by_norm(optimizer: tf.train.Optimizer, clip_norm: float) -> tf.train.Optimizer:
    """Wraps an optimizer to clip each variable's gradient to an L2 norm."""
    return _ClippingOptimizer(optimizer, clip_norm)


__all__ = ["clip_gradients_by_norm"]
