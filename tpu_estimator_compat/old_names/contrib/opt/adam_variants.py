"""Variants of Adam: LazyAdam, Nadam, AdaMax."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib.opt.variable_ops import training_op


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
        return training_op("ApplyAdam", **given, use_nesterov=True)

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
        return training_op("ApplyAdaMax", **self._dense(grad, var, beta1_power=self._power()))

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
