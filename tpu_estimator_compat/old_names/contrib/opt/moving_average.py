"""An optimizer that keeps moving averages, and a saver that stores them as the variables."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.training.saving import saveable_object_util


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
