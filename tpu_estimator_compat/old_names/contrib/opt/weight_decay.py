"""Optimizers with decoupled weight decay (Loshchilov & Hutter, https://arxiv.org/abs/1711.05101)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf


class DecoupledWeightDecayExtension:
    """A mixin for optimizers, as the first base: variables decay before each update.

    A variable loses `weight_decay` times its value per step. The learning rate does not scale the
    decay: apply a schedule to both.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any):
        self._weight_decay = weight_decay
        self._decaying: set[Any] | None = None
        super().__init__(**kwargs)

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = tf.train.Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
        decay_var_list: Collection[Any] | None = None,
    ) -> tf.Operation:
        """`Optimizer.minimize`; the variables of `decay_var_list`, by default all, decay."""
        grads_and_vars = self.compute_gradients(  # type: ignore[attr-defined]
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if not any(gradient is not None for gradient, _ in grads_and_vars):
            variables = [str(variable) for _, variable in grads_and_vars]
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {variables} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step, name, decay_var_list)

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Collection[Any] | None = None,
    ) -> tf.Operation:
        """`Optimizer.apply_gradients`; the variables of `decay_var_list`, by default all, decay."""
        self._decaying = {v.ref() for v in decay_var_list} if decay_var_list else None
        return super().apply_gradients(  # type: ignore[misc]
            grads_and_vars, global_step=global_step, name=name
        )

    def _decay_rate(self, dtype: tf.DType) -> tf.Tensor:
        value = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        return tf.cast(value, dtype)

    def _decays(self, variable: Any) -> bool:
        return self._decaying is None or variable.ref() in self._decaying

    def _after_decay(self, var: Any, grad: Any, indices: Any = None) -> Any:
        """A context whose ops run after the decay of a variable, or of some of its rows."""
        if not self._decays(var):
            return tf.control_dependencies([])
        rate = self._decay_rate(var.dtype.base_dtype)
        # The gradient is computed from the value before the decay.
        with tf.control_dependencies([grad]):
            if indices is None:
                decay = var.assign_sub(rate * var)
            else:
                decay = tf.scatter_add(var, indices, -rate * tf.gather(var, indices))
        return tf.control_dependencies([decay])

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var, grad):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var, grad):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    # Only rows that were looked up decay.

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var, grad.values, grad.indices):
            return super()._apply_sparse(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with self._after_decay(var, grad, indices):
            return super()._resource_apply_sparse(grad, var, indices)  # type: ignore[misc]


def extend_with_decoupled_weight_decay(
    base_optimizer: type[tf.train.Optimizer],
) -> type[tf.train.Optimizer]:
    """A subclass of an optimizer with decoupled weight decay.

    The optimizer's updates must not depend on the variable's value. The constructor takes
    `weight_decay`, then the optimizer's arguments as keywords.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ):
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ):
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
