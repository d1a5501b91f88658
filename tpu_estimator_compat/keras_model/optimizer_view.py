"""`model.optimizer` of an estimator's Keras model: shows model_fn's optimizer to callbacks."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.modes.model_modes import ModelModes
from tpu_estimator_compat.engine.step import learning_rate
from tpu_estimator_compat.spec import ModeKeys


class OptimizerView:
    """The optimizer of a training step, without its learning rate.

    `reason` says why there is none, after "model.optimizer has no learning_rate:".
    """

    name = "model_fn_optimizer"
    built = True
    variables = ()  # slots have TF1 names and belong to the model

    def __init__(self, modes: ModelModes, reason: str):
        self._modes = modes
        self._reason = reason

    @property
    def iterations(self) -> tf.Tensor:
        """The global step: an int64 scalar."""
        made = ModeKeys.TRAIN in self._modes
        step = self._modes[ModeKeys.TRAIN].ready_session.global_step() if made else 0
        return tf.constant(step, tf.int64)

    @property
    def learning_rate(self) -> Any:
        """Raises ValueError with the reason."""
        raise ValueError(f"model.optimizer has no learning_rate: {self._reason}.")

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        raise ValueError(
            f"model.optimizer.learning_rate={value!r} cannot be set: {self._reason}. Set the rate "
            "in model_fn, for example by a schedule of the global step."
        )


class OneRate(OptimizerView, keras.optimizers.Optimizer):
    """The optimizer of a model whose training step has one learning rate.

    `rates` are the tensors of the step's graph that hold the rate.
    """

    def __init__(self, modes: ModelModes, rates: list[tf.Tensor]):
        self._lock = False  # Keras' __init__ would make variables, which this view must not have
        self.use_ema = False
        OptimizerView.__init__(self, modes, "")
        self._rates = rates
        self._variable: str | None = None

    @property
    def learning_rate(self) -> tf.Tensor:
        """The rate of the next step, a float scalar. An assigned number replaces it."""
        mode = self._modes[ModeKeys.TRAIN]
        if self._variable is not None:
            return tf.constant(mode.captured.store[self._variable].numpy())
        return tf.constant(mode.ready_session.run(self._rates[0].name))

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        number = _checked(value)
        mode = self._modes[ModeKeys.TRAIN]
        if self._variable is None:
            if not mode.ready_session.may_renew_steps:
                raise NotImplementedError(
                    f"model.optimizer.learning_rate={value!r} cannot be set while several machines "
                    "train together: they have agreed on the graph of a step. Set the rate in "
                    "model_fn, by a schedule of the global step."
                )
            handle = learning_rate.replace(self._rates)
            mode.ready_session.renew_steps()
            mode.captured.store.prepare([handle], replicated=True)
            self._variable = handle.name
        mode.captured.store.assign(self._variable, number)


def view(modes: ModelModes) -> OptimizerView:
    if ModeKeys.TRAIN not in modes:
        reason = "there is no training step yet. Call fit, or keras_model(input_fn)"
        return OptimizerView(modes, reason)
    plan = modes[ModeKeys.TRAIN].plan
    with eager.eager_mode():
        try:
            rates = learning_rate.find(list(plan.targets), set(plan.trainable_names()))
        except ValueError as error:
            return OptimizerView(modes, f"the step of model_fn has no one learning rate: {error}")
        return OneRate(modes, rates)


def _checked(value: Any) -> float:
    try:
        number = float(np.asarray(keras.ops.convert_to_numpy(value)))
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise TypeError(
            f"model.optimizer.learning_rate must be a finite number, given: {value!r}. For a rate "
            "that changes, use keras.callbacks.LearningRateScheduler, or a schedule in model_fn."
        )
    return number
