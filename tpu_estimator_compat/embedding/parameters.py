"""Configurations of the optimizers of embedding tables: class and hyperparameters.

`optimizers.py` has the formulas. Each class has the fields of the original's class of the same
name, in the same order, because scripts pass them by position.
"""

from __future__ import annotations

import dataclasses
from typing import Any


class OptimizationParameters:
    """Options of all table optimizers; each class declares them after its own fields."""

    learning_rate: float
    use_gradient_accumulation: bool
    clip_weight_min: float | None
    clip_weight_max: float | None
    weight_decay_factor: float | None
    multiply_weight_decay_factor_by_learning_rate: bool | None
    clip_gradient_min: float | None
    clip_gradient_max: float | None

    def __post_init__(self) -> None:
        limits = (self.clip_gradient_min, self.clip_gradient_max)
        if not self.use_gradient_accumulation and limits != (None, None):
            raise ValueError(
                "When using gradient clipping limits, gradient accumulation must be enabled. Got "
                f"use_gradient_accumulation=False with clip_gradient_min={limits[0]} and "
                f"clip_gradient_max={limits[1]}."
            )
        self._check()

    def _check(self) -> None:
        """Raises ValueError for a hyperparameter out of range; a class may override it."""

    def _check_at_least(self, least: float, *names: str) -> None:
        for name in names:
            value: Any = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be greater than or equal to {least}. got {value}.")

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value: Any = getattr(self, name)
            if value <= 0:
                raise ValueError(f"{name} must be positive; got {value}.")

    def _check_rate(self, *names: str) -> None:
        for name in names:
            value: Any = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be between 0. and 1; got {value}.")


_COMMON = """
      use_gradient_accumulation: whether gradients of an id that occurs several times in a step are
        added up before they are applied. They always are: to apply them one by one was less
        accurate, and was there because it was faster on a TPU.
      clip_weight_min: rows are not less than this after an update; None for no limit.
      clip_weight_max: rows are not more than this after an update; None for no limit.
      weight_decay_factor: the part of a row that is taken off it before an update; None for none.
      multiply_weight_decay_factor_by_learning_rate: whether that part is multiplied by the learning
        rate.
      clip_gradient_min: summed gradients are not less than this; None for no limit.
      clip_gradient_max: summed gradients are not more than this; None for no limit."""


def _documented(cls: type) -> type:
    cls.__doc__ = f"{(cls.__doc__ or '').rstrip()}{_COMMON}\n\n    Raises:\n      ValueError: a "
    cls.__doc__ += "hyperparameter out of its range, or limits of gradients without accumulation.\n"
    return cls


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class StochasticGradientDescentParameters(OptimizationParameters):
    """Stochastic gradient descent, for embedding tables.

    Example:
      >>> StochasticGradientDescentParameters(0.1, clip_weight_max=1.0).clip_weight_max
      1.0

    Args:
      learning_rate: rate of tables that have none of their own.
    """

    learning_rate: float
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class AdagradParameters(OptimizationParameters):
    """Adagrad, for embedding tables.

    Example:
      >>> AdagradParameters(0.1).initial_accumulator
      0.1

    Args:
      learning_rate: rate of tables that have none of their own.
      initial_accumulator: first value of the sums of squared gradients.
    """

    learning_rate: float
    initial_accumulator: float = 0.1
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None

    def _check(self) -> None:
        self._check_positive("initial_accumulator")


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class ProximalAdagradParameters(OptimizationParameters):
    """Adagrad with L1 and L2 regularisation by proximal steps, for embedding tables.

    Example:
      >>> ProximalAdagradParameters(0.1, l1_regularization_strength=0.01).initial_accumulator
      0.1

    Args:
      learning_rate: rate of tables that have none of their own.
      initial_accumulator: first value of the sums of squared gradients.
      l1_regularization_strength: weight of the L1 norm.
      l2_regularization_strength: weight of half the squared L2 norm.
    """

    learning_rate: float
    initial_accumulator: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None

    def _check(self) -> None:
        self._check_positive("initial_accumulator")
        self._check_at_least(0, "l1_regularization_strength", "l2_regularization_strength")


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class AdamParameters(OptimizationParameters):
    """Adam without bias correction, for embedding tables.

    To correct the bias, give the table a `learning_rate_fn` that multiplies the learning rate by
    `sqrt(1 - beta2**t) / (1 - beta1**t)`.

    Example:
      >>> AdamParameters(0.001, lazy_adam=False).beta1
      0.9

    Args:
      learning_rate: rate of tables that have none of their own.
      beta1: decay of the mean of gradients.
      beta2: decay of the mean of squared gradients.
      epsilon: keeps the divisor above zero.
      lazy_adam: whether a step updates only the rows that it looks up; False updates all rows in
        every step.
      sum_inside_sqrt: whether the divisor is `sqrt(v + epsilon**2)`, not `sqrt(v) + epsilon`.
    """

    learning_rate: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-08
    lazy_adam: bool = True
    sum_inside_sqrt: bool = True
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None

    def _check(self) -> None:
        self._check_rate("beta1", "beta2")
        self._check_positive("epsilon")
        if not self.use_gradient_accumulation and not self.lazy_adam:
            raise ValueError(
                "When disabling lazy Adam (lazy_adam=False), gradient accumulation must be used. "
                "Got use_gradient_accumulation=False."
            )


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class FtrlParameters(OptimizationParameters):
    """FTRL-Proximal, for embedding tables.

    Example:
      >>> FtrlParameters(0.1, l1_regularization_strength=0.01).learning_rate_power
      -0.5

    Args:
      learning_rate: rate of tables that have none of their own.
      learning_rate_power: exponent of the sums of squared gradients in the learning rate; zero or
        negative.
      initial_accumulator_value: first value of those sums.
      l1_regularization_strength: weight of the L1 norm.
      l2_regularization_strength: weight of the squared L2 norm.
      multiply_linear_by_learning_rate: whether the slot `linear` holds its value times the learning
        rate, which avoids a division by a learning rate of zero.
      beta: added to the root of the accumulator in the divisor.
      allow_zero_accumulator: accepted; an accumulator of zero is always allowed.
    """

    learning_rate: float
    learning_rate_power: float = -0.5
    initial_accumulator_value: float = 0.1
    l1_regularization_strength: float = 0.0
    l2_regularization_strength: float = 0.0
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    multiply_linear_by_learning_rate: bool = False
    beta: float = 0
    allow_zero_accumulator: bool = False
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None

    initial_linear_value = 0.0

    def _check(self) -> None:
        if self.learning_rate_power > 0:
            raise ValueError(
                "learning_rate_power must be less than or equal to 0. got "
                f"{self.learning_rate_power}."
            )
        self._check_at_least(
            0,
            "initial_accumulator_value",
            "l1_regularization_strength",
            "l2_regularization_strength",
        )


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class MomentumParameters(OptimizationParameters):
    """Stochastic gradient descent with momentum, for embedding tables.

    Example:
      >>> MomentumParameters(0.1, momentum=0.9, use_nesterov=True).momentum
      0.9

    Args:
      learning_rate: rate of tables that have none of their own.
      momentum: decay of the sum of gradients.
      use_nesterov: whether to use Nesterov momentum (Sutskever et al., 2013).
    """

    learning_rate: float
    momentum: float
    use_nesterov: bool = False
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


@_documented
@dataclasses.dataclass(frozen=True, eq=False)
class RMSPropParameters(OptimizationParameters):
    """RMSProp, for embedding tables.

    Example:
      >>> RMSPropParameters(0.1, rho=0.9, momentum=0.0, epsilon=1e-8).rho
      0.9

    Args:
      learning_rate: rate of tables that have none of their own.
      rho: decay of the mean of squared gradients.
      momentum: decay of the sum of updates.
      epsilon: keeps the divisor above zero.
    """

    learning_rate: float
    rho: float
    momentum: float
    epsilon: float
    use_gradient_accumulation: bool = True
    clip_weight_min: float | None = None
    clip_weight_max: float | None = None
    weight_decay_factor: float | None = None
    multiply_weight_decay_factor_by_learning_rate: bool | None = None
    clip_gradient_min: float | None = None
    clip_gradient_max: float | None = None


SUPPORTED = (
    ProximalAdagradParameters,
    AdagradParameters,
    AdamParameters,
    FtrlParameters,
    StochasticGradientDescentParameters,
    MomentumParameters,
    RMSPropParameters,
)
