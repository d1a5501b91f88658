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
        self._of_minimize: Collection[Any] | None = None
        super().__init__(**kwargs)

    def minimize(
        self, loss: Any, *args: Any, decay_var_list: Collection[Any] | None = None, **kwargs: Any
    ) -> tf.Operation:
        """`Optimizer.minimize`; the variables of `decay_var_list`, by default all, decay."""
        self._of_minimize = decay_var_list
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Collection[Any] | None = None,
    ) -> tf.Operation:
        """`Optimizer.apply_gradients`; the variables of `decay_var_list`, by default all, decay."""
        decaying, self._of_minimize = decay_var_list or self._of_minimize, None
        self._decaying = {v.ref() for v in decaying} if decaying else None
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
