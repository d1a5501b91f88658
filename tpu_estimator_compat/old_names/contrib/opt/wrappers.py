"""Optimizers around another: one keeps moving averages, one skips gradients that are zero."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.training.saving import saveable_object_util

_METHODS = ("_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse")


class MovingAverageOptimizer(tf.train.Optimizer):
    """Wraps an optimizer; keeps a moving average of each variable that it updates.

    Train with `swapping_saver()`: its checkpoints have the averages under the variables' names, so
    that evaluation and export can use an ordinary saver. With `sequential_update`, averages are
    updated after the variables, not at the same time.
    """

    def __init__(
        self,
        opt: tf.train.Optimizer,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ):
        super().__init__(use_locking=False, name="MovingAverage")
        self._optimizer = opt
        self._ema = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._partner: dict[str, str] | None = None
        self._sequential_update = sequential_update

    compute_gradients = property(operator.attrgetter("_optimizer.compute_gradients"))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        grads_and_vars = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(grads_and_vars, global_step, name)
        variables = [variable for gradient, variable in grads_and_vars if gradient is not None]
        with tf.control_dependencies([train_op] if self._sequential_update else []):
            update = self._ema.apply(variables)
        self._partner = {}
        for variable in variables:
            average = self._ema.average(variable)
            self._partner[variable.op.name] = average.op.name
            self._partner[average.op.name] = variable.op.name
        return tf.group(train_op, update, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> tf.train.Saver:
        """A saver that swaps averages and variables by name; call it after `apply_gradients`."""
        if self._partner is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        if var_list is None:
            var_list = tf.global_variables()
        if not isinstance(var_list, dict):
            var_list = saveable_object_util.op_list_to_dict(var_list)
        by_name = {}
        for key, value in var_list.items():
            parts = value if isinstance(value, list) else []
            by_name.update({part.op.name: part for part in parts} or {key: value})
        swapped = {
            key: [self._swapped(part.op.name, by_name) for part in value]
            if isinstance(value, list)
            else self._swapped(key, by_name)
            for key, value in var_list.items()
        }
        return tf.train.Saver(swapped, name=name, **kwargs)

    def _swapped(self, name: str, by_name: dict[str, Any]) -> Any:
        assert self._partner is not None
        partner = self._partner.get(name, name)
        if partner not in by_name:
            raise ValueError(
                f"Variable to swap {partner} is not part of variables to save. This breaks "
                "MovingAverageOptimizer."
            )
        return by_name[partner]


class MultitaskOptimizerWrapper:
    """Modifies an optimizer so that an all-zero gradient changes neither variable nor slots."""

    def __init__(self, opt: tf.train.Optimizer):
        if not isinstance(opt, tf.train.Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in _METHODS:
            setattr(opt, name, _unless_zero(getattr(opt, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zero(apply: Any) -> Any:
    def wrapped(grad: Any, *args: Any) -> tf.Operation:
        def do_apply() -> tf.Operation:
            with tf.control_dependencies([apply(grad, *args)]):
                return tf.no_op()

        values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
        return tf.cond(tf.equal(tf.count_nonzero(values), 0), tf.no_op, do_apply)

    return wrapped


def clip_gradients_by_global_norm(
    gradients_variables: list[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], tf.Tensor]:
    """Pairs of clipped gradients and variables, and the global norm before clipping."""
    gradients, variables = zip(*gradients_variables, strict=True)
    # All-zero gradients add nothing to the norm.
    norm = tf.global_norm(gradients)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, variables, strict=True)), norm
