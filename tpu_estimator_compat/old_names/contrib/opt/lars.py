"""LARS: layer-wise adaptive learning rates (https://arxiv.org/abs/1708.03888)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib.opt.variable_ops import training_op


class LARSOptimizer(tf.train.Optimizer):
    """Momentum with a learning rate scaled by the norms of each variable and its gradient.

    For a variable `w` with a dense gradient `g`, the scale is `eeta * |w| / (|g| + weight_decay *
    |w| + epsilon)`, or 1 if either norm is 0, and `g` becomes `g + weight_decay * w`. Sparse
    gradients, and variables whose names contain a string of `skip_list`, get plain momentum.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ):
        if not callable(momentum) and not tf.is_tensor(momentum) and momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(use_locking=False, name=name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list or ()
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _prepare(self) -> None:
        def tensor(value: Any, name: str) -> tf.Tensor:
            return tf.convert_to_tensor(value() if callable(value) else value, name=name)

        self._learning_rate_tensor = tensor(self._learning_rate, "learning_rate")
        self._momentum_tensor = tensor(self._momentum, "momentum")

    def compute_lr(self, grad: tf.Tensor, var: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """The learning rate of a variable, and its gradient with weight decay."""
        rate = tf.cast(self._learning_rate_tensor, var.dtype.base_dtype)
        if any(part in var.name for part in self._skip_list):
            return rate, grad
        w_norm, g_norm = tf.norm(var, ord=2), tf.norm(grad, ord=2)
        ratio = self._eeta * w_norm / (g_norm + self._weight_decay * w_norm + self._epsilon)
        ratio = tf.where((w_norm > 0) & (g_norm > 0), ratio, tf.ones_like(ratio))
        return rate * ratio, grad + self._weight_decay * var

    def _resource_apply_dense(self, grad: Any, var: Any) -> tf.Operation:
        rate, grad = self.compute_lr(grad, var)
        dtype = var.dtype.base_dtype
        return training_op(
            "ApplyMomentum",
            {"var": var, "accum": self.get_slot(var, "momentum")},
            lr=tf.cast(1.0, dtype),
            grad=grad * rate,
            momentum=tf.cast(self._momentum_tensor, dtype),
            use_nesterov=self._use_nesterov,
        )

    _apply_dense = _resource_apply_dense

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        return training_op(
            "SparseApplyMomentum",
            {"var": var, "accum": self.get_slot(var, "momentum")},
            lr=tf.cast(self._learning_rate_tensor, grad.dtype),
            grad=grad,
            indices=indices,
            momentum=tf.cast(self._momentum_tensor, grad.dtype),
            use_nesterov=self._use_nesterov,
        )

    def _apply_sparse(self, grad: Any, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)
