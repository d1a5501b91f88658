"""Optimizers with rules of their own: LazyAdam, Nadam, AdaMax, LARS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class _AdamVariant(tf.train.AdamOptimizer):
    def _dense(self, grad: Any, var: Any, **powers: Any) -> dict[str, Any]:
        rates = {"lr": self._lr_t, "beta1": self._beta1_t, "beta2": self._beta2_t}
        scalars = {**powers, **rates, "epsilon": self._epsilon_t}
        return {
            "variables": {"var": var, **{slot: self.get_slot(var, slot) for slot in "mv"}},
            "grad": grad,
            "use_locking": self._use_locking,
            **{name: tf.cast(value, grad.dtype.base_dtype) for name, value in scalars.items()},
        }

    def _corrected_rate(self, dtype: tf.DType) -> tf.Tensor:
        power1, power2 = (tf.cast(power, dtype) for power in self._get_beta_accumulators())
        return tf.cast(self._lr_t, dtype) * tf.sqrt(1 - power2) / (1 - power1)


class LazyAdamOptimizer(_AdamVariant):
    """Adam that updates the moments of an embedding's row only when the row is looked up."""

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        dtype = var.dtype.base_dtype
        beta1, beta2 = tf.cast(self._beta1_t, dtype), tf.cast(self._beta2_t, dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        rate = self._corrected_rate(dtype)
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        new_v = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(grad)
        step = rate * new_m / (tf.sqrt(new_v) + tf.cast(self._epsilon_t, dtype))
        return tf.group(
            tf.scatter_sub(var, indices, step, self._use_locking),
            tf.scatter_update(m, indices, new_m, self._use_locking),
            tf.scatter_update(v, indices, new_v, self._use_locking),
        )

    def _apply_sparse(self, grad: Any, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)


class NadamOptimizer(_AdamVariant):
    """Adam with Nesterov momentum (Dozat, http://cs229.stanford.edu/proj2015/054_report.pdf)."""

    def _resource_apply_dense(self, grad: Any, var: Any) -> tf.Operation:
        power1, power2 = self._get_beta_accumulators()
        given = self._dense(grad, var, beta1_power=power1, beta2_power=power2)
        return _training_op("ApplyAdam", **given, use_nesterov=True)

    _apply_dense = _resource_apply_dense

    def _apply_sparse_shared(self, grad: Any, var: Any, indices: Any, scatter_add: Any) -> Any:
        dtype = var.dtype.base_dtype
        beta1, beta2 = tf.cast(self._beta1_t, dtype), tf.cast(self._beta2_t, dtype)
        rate = self._corrected_rate(dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        # The moments of all rows decay, looked up or not.
        with tf.control_dependencies([m.assign(m * beta1), v.assign(v * beta2)]):
            new_m = scatter_add(m, indices, grad * (1 - beta1))
            new_v = scatter_add(v, indices, tf.square(grad) * (1 - beta2))
        ahead = grad * (1 - beta1) + beta1 * tf.gather(new_m, indices)
        scale = tf.sqrt(tf.gather(new_v, indices)) + tf.cast(self._epsilon_t, dtype)
        return tf.group(scatter_add(var, indices, -rate * ahead / scale), new_m, new_v)


class AdaMaxOptimizer(_AdamVariant):
    """Adam with the infinity norm (section 7.1 of https://arxiv.org/abs/1412.6980).

    Only rows of an embedding that were looked up are updated.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _create_slots(self, var_list: Any) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        self._create_non_slot_variable(
            initial_value=self._beta1, name="beta1_power", colocate_with=first
        )
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _power(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=tf.get_default_graph())

    def _resource_apply_dense(self, grad: Any, var: Any) -> tf.Operation:
        return _training_op("ApplyAdaMax", **self._dense(grad, var, beta1_power=self._power()))

    _apply_dense = _resource_apply_dense

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        dtype = var.dtype.base_dtype
        beta1, beta2 = tf.cast(self._beta1_t, dtype), tf.cast(self._beta2_t, dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * grad
        new_v = tf.maximum(beta2 * tf.gather(v, indices), tf.abs(grad))
        rate = -tf.cast(self._lr_t, dtype) / (1 - tf.cast(self._power(), dtype))
        step = rate * (new_m / (new_v + tf.cast(self._epsilon_t, dtype)))
        return tf.group(
            tf.scatter_add(var, indices, step, self._use_locking),
            tf.scatter_update(m, indices, new_m, self._use_locking),
            tf.scatter_update(v, indices, new_v, self._use_locking),
        )

    def _apply_sparse(self, grad: Any, var: Any) -> tf.Operation:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _finish(self, update_ops: Any, name_scope: str) -> tf.Operation:
        with tf.control_dependencies(update_ops):
            power = self._power()
            update = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf.group(*update_ops, update, name=name_scope)


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
        return _training_op(
            "ApplyMomentum",
            {"var": var, "accum": self.get_slot(var, "momentum")},
            lr=tf.cast(1.0, dtype),
            grad=grad * rate,
            momentum=tf.cast(self._momentum_tensor, dtype),
            use_nesterov=self._use_nesterov,
        )

    _apply_dense = _resource_apply_dense

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        return _training_op(
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


def _training_op(name: str, variables: dict[str, Any], **arguments: Any) -> tf.Operation:
    """Applies a gradient with an op such as `ApplyAdam`, or `ResourceApplyAdam` for resources.

    `name` is that of the op for refs; `variables`, by argument name, are all refs or all resources.
    """
    if variables["var"].dtype._is_ref_dtype:
        return getattr(tf.raw_ops, name)(**variables, **arguments).op
    handles = {argument: variable.handle for argument, variable in variables.items()}
    return getattr(tf.raw_ops, f"Resource{name}")(**handles, **arguments)
