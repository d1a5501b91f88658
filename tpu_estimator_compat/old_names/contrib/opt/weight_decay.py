"""Optimizers with decoupled weight decay (Loshchilov & Hutter, https://arxiv.org/abs/1711.05101)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import resource_variable_ops

from tpu_estimator_compat.old_names.contrib.opt.resource_only import ResourceVariablesOnly


class DecoupledWeightDecayExtension(ResourceVariablesOnly):
    """A mixin that goes before an optimizer: variables decay, then the optimizer updates them.

    A variable loses `weight_decay` times its value per step. The learning rate plays no part in it:
    a schedule for the one must be applied to the other too.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any):
        self._weight_decay = weight_decay
        self._decaying: set[Any] | None = None
        self._for_minimize: Collection[Any] | None = None  # until `minimize` applies gradients
        super().__init__(**kwargs)

    def minimize(
        self, *args: Any, decay_var_list: Collection[Any] | None = None, **kwargs: Any
    ) -> tf.Operation:
        """`Optimizer.minimize`; the variables of `decay_var_list`, by default all, decay."""
        self._for_minimize = decay_var_list
        return super().minimize(*args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Collection[Any] | None = None,
    ) -> tf.Operation:
        """`Optimizer.apply_gradients`; the variables of `decay_var_list`, by default all, decay."""
        decay_var_list = decay_var_list or self._for_minimize
        self._for_minimize = None
        self._decaying = {v.ref() for v in decay_var_list} if decay_var_list else None
        return super().apply_gradients(  # type: ignore[misc]
            grads_and_vars, global_step=global_step, name=name
        )

    def _decay(self, dtype: tf.DType) -> tf.Tensor:
        value = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        return tf.cast(value, dtype)

    def _decays(self, variable: Any) -> bool:
        return self._decaying is None or variable.ref() in self._decaying

    # A variable decays after its gradient is known: the gradient is that of the value before.

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        decays = []
        if self._decays(var):
            with tf.control_dependencies([grad]):
                decays = [var.assign_sub(self._decay(var.dtype) * var)]
        with tf.control_dependencies(decays):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        # Only the rows that were looked up decay.
        decays = []
        if self._decays(var):
            with tf.control_dependencies([grad]):
                lost = self._decay(var.dtype) * tf.gather(var, indices)
                decays = [resource_variable_ops.resource_scatter_sub(var.handle, indices, lost)]
        with tf.control_dependencies(decays):
            return super()._resource_apply_sparse(grad, var, indices)  # type: ignore[misc]


def extend_with_decoupled_weight_decay(
    base_optimizer: type[tf.train.Optimizer],
) -> type[tf.train.Optimizer]:
    """A subclass of an optimizer with decoupled weight decay.

    The optimizer's updates must not depend on the variable's value. The constructor takes
    `weight_decay`, then the optimizer's arguments by name.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """Momentum with decoupled weight decay."""

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
    """Adam with decoupled weight decay."""

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
