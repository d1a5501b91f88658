"""The optimizers of tables: how a step's gradients change the rows that it looked up.

An optimizer is a row of `OPTIMIZERS`: its slots, and a function that builds the update. Where
TensorFlow has a kernel that changes some rows of a variable in place, that is the update. The
formulas are those that `tensorflow/core/protobuf/tpu/optimization_parameters.proto` refers to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.embedding import parameters as p


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a table and what is to be done to them.

    Attributes:
      table: the resource variable, float32 of shape [rows, dimension].
      slots: the optimizer's own variables, of that shape.
      ids: int64 of shape [n], which rows; each at most once.
      gradients: float32 of shape [n, dimension].
      learning_rate: float32 scalar.
    """

    table: tf.Variable
    slots: Sequence[tf.Variable]
    ids: tf.Tensor
    gradients: tf.Tensor
    learning_rate: tf.Tensor

    @property
    def kernel_arguments(self) -> dict[str, tf.Tensor]:
        """What every sparse kernel of TensorFlow takes."""
        return {
            "var": self.table.handle,
            "lr": self.learning_rate,
            "grad": self.gradients,
            "indices": self.ids,
        }


@dataclasses.dataclass(frozen=True)
class Slot:
    """A variable of an optimizer.

    Attributes:
      suffix: of its name, behind the table's: what `tf.compat.v1.train` calls it.
      initial: takes the parameters, returns its first value.
    """

    suffix: str
    initial: Callable[[Any], float] = lambda parameters: 0.0


@dataclasses.dataclass(frozen=True)
class TableOptimizer:
    """One optimizer.

    Attributes:
      slots: its variables.
      update: takes the parameters and the rows; builds the update, returns its operations.
    """

    slots: Sequence[Slot]
    update: Callable[[Any, Rows], list[tf.Operation]]


def apply(parameters: p.OptimizationParameters, rows: Rows) -> tf.Operation:
    """Builds the update of rows: weight decay, the optimizer, limits of weights, in this order.

    Weights decay as in TensorFlow 1's `DecoupledWeightDecayExtension`: before the update, by a part
    of what they are (Loshchilov & Hutter, https://arxiv.org/abs/1711.05101).

    Args:
      parameters: which optimizer, and its hyperparameters.
      rows: the rows, with summed gradients.

    Returns:
      The operation that updates table and slots.
    """
    if isinstance(parameters, p.AdamParameters) and not parameters.lazy_adam:
        rows = _all_rows(rows)
    rows = dataclasses.replace(rows, gradients=_limited_gradients(parameters, rows.gradients))
    with tf.control_dependencies(_decay(parameters, rows)):
        rows = dataclasses.replace(rows, gradients=tf.identity(rows.gradients))
        updates = OPTIMIZERS[type(parameters)].update(parameters, rows)
    with tf.control_dependencies(updates):
        return tf.group(*updates, *_limit_weights(parameters, rows))


def _all_rows(rows: Rows) -> Rows:
    """All rows of the table, with gradients of zero for those that were not looked up."""
    count, dimension = rows.table.shape.as_list()
    shape = tf.constant([count, dimension], tf.int64)
    gradients = tf.scatter_nd(rows.ids[:, tf.newaxis], rows.gradients, shape)
    ids = tf.range(tf.constant(count, tf.int64))
    return dataclasses.replace(rows, ids=ids, gradients=gradients)


def _limited_gradients(parameters: p.OptimizationParameters, gradients: tf.Tensor) -> tf.Tensor:
    return _limited(gradients, parameters.clip_gradient_min, parameters.clip_gradient_max)


def _limited(values: tf.Tensor, least: float | None, most: float | None) -> tf.Tensor:
    if least is not None:
        values = tf.maximum(values, least)
    if most is not None:
        values = tf.minimum(values, most)
    return values


def _decay(parameters: p.OptimizationParameters, rows: Rows) -> list[tf.Operation]:
    if not parameters.weight_decay_factor:
        return []
    part = tf.constant(parameters.weight_decay_factor, tf.float32)
    if parameters.multiply_weight_decay_factor_by_learning_rate:
        part *= rows.learning_rate
    values = part * _gathered(rows.table, rows.ids)
    return [_subtract(rows.table, rows.ids, values)]


def _limit_weights(parameters: p.OptimizationParameters, rows: Rows) -> list[tf.Operation]:
    least, most = parameters.clip_weight_min, parameters.clip_weight_max
    if least is None and most is None:
        return []
    # Not the tensor that was read before the update: control dependencies hold for new reads.
    values = _limited(_gathered(rows.table, rows.ids), least, most)
    return [_put(rows.table, rows.ids, values)]


def _gathered(variable: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.ResourceGather(
        resource=variable.handle, indices=ids, dtype=tf.float32, validate_indices=False
    )


def _put(variable: tf.Variable, ids: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    return tf.raw_ops.ResourceScatterUpdate(resource=variable.handle, indices=ids, updates=values)


def _subtract(variable: tf.Variable, ids: tf.Tensor, values: tf.Tensor) -> tf.Operation:
    return tf.raw_ops.ResourceScatterSub(resource=variable.handle, indices=ids, updates=values)


def _descend(parameters: p.StochasticGradientDescentParameters, rows: Rows) -> list[tf.Operation]:
    """w -= lr g"""
    del parameters
    return [_subtract(rows.table, rows.ids, rows.learning_rate * rows.gradients)]


def _adagrad(parameters: p.AdagradParameters, rows: Rows) -> list[tf.Operation]:
    """a += g^2; w -= lr g / sqrt(a). Duchi et al., 2011, https://jmlr.org/papers/v12/duchi11a.html

    The kernel is that of `tf.compat.v1.train.AdagradOptimizer`.
    """
    del parameters
    [accumulator] = rows.slots
    return [
        tf.raw_ops.ResourceSparseApplyAdagrad(accum=accumulator.handle, **rows.kernel_arguments)
    ]


def _proximal_adagrad(p_: p.ProximalAdagradParameters, rows: Rows) -> list[tf.Operation]:
    """a += g^2; r = lr / sqrt(a); x = w - r g; w = sign(x) max(|x| - r l1, 0) / (1 + r l2).

    The kernel is that of `tf.compat.v1.train.ProximalAdagradOptimizer`; Duchi & Singer, 2009,
    https://jmlr.org/papers/v10/duchi09a.html
    """
    [accumulator] = rows.slots
    return [
        tf.raw_ops.ResourceSparseApplyProximalAdagrad(
            accum=accumulator.handle,
            l1=p_.l1_regularization_strength,
            l2=p_.l2_regularization_strength,
            **rows.kernel_arguments,
        )
    ]


def _momentum(parameters: p.MomentumParameters, rows: Rows) -> list[tf.Operation]:
    """a = momentum a + g; w -= lr a, or lr (g + momentum a) with Nesterov's.

    The kernel is that of `tf.compat.v1.train.MomentumOptimizer`; Sutskever et al., 2013,
    https://proceedings.mlr.press/v28/sutskever13.html
    """
    [accumulator] = rows.slots
    return [
        tf.raw_ops.ResourceSparseApplyMomentum(
            accum=accumulator.handle,
            momentum=parameters.momentum,
            use_nesterov=parameters.use_nesterov,
            **rows.kernel_arguments,
        )
    ]


def _rms_prop(parameters: p.RMSPropParameters, rows: Rows) -> list[tf.Operation]:
    """s = rho s + (1 - rho) g^2; d = momentum d + lr g / sqrt(s + epsilon); w -= d.

    The kernel is that of `tf.compat.v1.train.RMSPropOptimizer`.
    """
    mean_square, direction = rows.slots
    return [
        tf.raw_ops.ResourceSparseApplyRMSProp(
            ms=mean_square.handle,
            mom=direction.handle,
            rho=parameters.rho,
            momentum=parameters.momentum,
            epsilon=parameters.epsilon,
            **rows.kernel_arguments,
        )
    ]


def _ftrl(parameters: p.FtrlParameters, rows: Rows) -> list[tf.Operation]:
    """McMahan et al., 2013, https://research.google.com/pubs/archive/41159.pdf, algorithm 1.

    With q the power of the learning rate: b = a + g^2; z += g - (b^-q - a^-q) w / lr; a = b;
    w = -(z - clip(z, -l1, l1)) / ((beta + a^-q) / lr + 2 l2). `multiply_linear_by_learning_rate`
    holds z lr in place of z.
    """
    accumulator, linear = rows.slots
    before = _gathered(accumulator, rows.ids)
    weights, z = _gathered(rows.table, rows.ids), _gathered(linear, rows.ids)
    after = before + tf.square(rows.gradients)
    power = -parameters.learning_rate_power
    root, change = after**power, after**power - before**power
    l1, l2 = parameters.l1_regularization_strength, parameters.l2_regularization_strength
    rate = rows.learning_rate
    if parameters.multiply_linear_by_learning_rate:
        z += rate * rows.gradients - change * weights
        limit, divisor = l1 * rate, parameters.beta + root + 2 * l2 * rate
    else:
        z += rows.gradients - change * weights / rate
        limit, divisor = tf.constant(l1, tf.float32), (parameters.beta + root) / rate + 2 * l2
    weights = (tf.clip_by_value(z, -limit, limit) - z) / divisor
    with tf.control_dependencies([weights]):  # all is read before anything is written
        return [
            _put(rows.table, rows.ids, weights),
            _put(accumulator, rows.ids, after),
            _put(linear, rows.ids, z),
        ]


def _adam(parameters: p.AdamParameters, rows: Rows) -> list[tf.Operation]:
    """m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= lr m / sqrt(v + epsilon^2).

    Kingma & Ba, 2015, https://arxiv.org/abs/1412.6980, without the correction of bias, as on TPU.
    The divisor is `sqrt(v) + epsilon` without `sum_inside_sqrt`.
    """
    mean, mean_square = rows.slots
    g, b1, b2 = rows.gradients, parameters.beta1, parameters.beta2
    m = b1 * _gathered(mean, rows.ids) + (1 - b1) * g
    v = b2 * _gathered(mean_square, rows.ids) + (1 - b2) * tf.square(g)
    step = rows.learning_rate * m / _adam_divisor(parameters, v)
    with tf.control_dependencies([step]):
        return [
            _subtract(rows.table, rows.ids, step),
            _put(mean, rows.ids, m),
            _put(mean_square, rows.ids, v),
        ]


def _adam_divisor(parameters: p.AdamParameters, v: tf.Tensor) -> tf.Tensor:
    if parameters.sum_inside_sqrt:
        return tf.sqrt(v + parameters.epsilon**2)
    return tf.sqrt(v) + parameters.epsilon


_ACCUMULATOR: Callable[[Any], float] = lambda parameters: parameters.initial_accumulator  # noqa: E731

OPTIMIZERS: dict[type[p.OptimizationParameters], TableOptimizer] = {
    p.StochasticGradientDescentParameters: TableOptimizer([], _descend),
    p.AdagradParameters: TableOptimizer([Slot("Adagrad", _ACCUMULATOR)], _adagrad),
    p.ProximalAdagradParameters: TableOptimizer(
        [Slot("ProximalAdagrad", _ACCUMULATOR)], _proximal_adagrad
    ),
    p.AdamParameters: TableOptimizer([Slot("Adam"), Slot("Adam_1")], _adam),
    p.FtrlParameters: TableOptimizer(
        [Slot("Ftrl", lambda parameters: parameters.initial_accumulator_value), Slot("Ftrl_1")],
        _ftrl,
    ),
    p.MomentumParameters: TableOptimizer([Slot("Momentum")], _momentum),
    p.RMSPropParameters: TableOptimizer([Slot("RMSProp"), Slot("RMSProp_1")], _rms_prop),
}
"""By the class of the parameters."""
