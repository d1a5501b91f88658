"""The optimizers of tables: apply gradients to the rows that a step looked up.

`OPTIMIZERS` has the slots and the formula of each. The references are those of
`tensorflow/core/protobuf/tpu/optimization_parameters.proto`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.embedding import parameters as p


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a table and the values that update them.

    Attributes:
      table: the resource variable, float32 of shape [rows, dimension].
      slots: the optimizer's own variables, of the table's shape.
      ids: int64 of shape [n]: indices of the rows, without duplicates.
      gradients: float32 of shape [n, dimension].
      learning_rate: float32 scalar.
    """

    table: tf.Variable
    slots: Sequence[tf.Variable]
    ids: tf.Tensor
    gradients: tf.Tensor
    learning_rate: tf.Tensor

    def of(self, variable: tf.Variable) -> tf.Tensor:
        """These rows of the table or of a slot: float32 of shape [n, dimension]."""
        return tf.raw_ops.ResourceGather(
            resource=variable.handle, indices=self.ids, dtype=tf.float32, validate_indices=False
        )

    def put(self, variable: tf.Variable, values: tf.Tensor) -> tf.Operation:
        return tf.raw_ops.ResourceScatterUpdate(
            resource=variable.handle, indices=self.ids, updates=values
        )


@dataclasses.dataclass(frozen=True)
class Slot:
    """A slot variable; `<table>/<suffix>` is its name, as in `tf.compat.v1.train`."""

    suffix: str
    initial: Callable[[Any], float] = lambda parameters: 0.0


class Read(NamedTuple):
    """The inputs of an update; all but the rate have shape [n, dimension]."""

    weights: tf.Tensor
    slots: list[tf.Tensor]
    gradients: tf.Tensor
    rate: tf.Tensor


Updated = tuple[tf.Tensor, list[tf.Tensor]]  # weights and slots
Formula = Callable[[Any, Read], Updated]


@dataclasses.dataclass(frozen=True)
class TableOptimizer:
    slots: Sequence[Slot]
    formula: Formula


def apply(parameters: p.OptimizationParameters, rows: Rows) -> tf.Operation:
    """Builds the update of table and slots: weight decay, the optimizer, weight limits.

    The rows are read, updated and assigned back. TensorFlow's in-place kernels, such as
    ResourceSparseApplyAdagrad, took twice as long: they compute row by row. Every variable is
    assigned once, with a value that depends on its read, so no control dependency is needed.

    Weights decay as in TensorFlow 1's `DecoupledWeightDecayExtension`: before the update, in
    proportion to their values (Loshchilov & Hutter, https://arxiv.org/abs/1711.05101).
    """
    if isinstance(parameters, p.AdamParameters) and not parameters.lazy_adam:
        rows = _all_rows(rows)
    slots, rate = [rows.of(slot) for slot in rows.slots], rows.learning_rate
    gradients = _limited(rows.gradients, parameters.clip_gradient_min, parameters.clip_gradient_max)
    weights = _decayed(parameters, rows.of(rows.table), rate)
    formula = OPTIMIZERS[type(parameters)].formula
    weights, slots = formula(parameters, Read(weights, slots, gradients, rate))
    weights = _limited(weights, parameters.clip_weight_min, parameters.clip_weight_max)
    updates = [rows.put(slot, new) for slot, new in zip(rows.slots, slots, strict=True)]
    return tf.group(rows.put(rows.table, weights), *updates)


def _all_rows(rows: Rows) -> Rows:
    """All rows of the table, with zero gradients for rows that were not looked up."""
    count, dimension = rows.table.shape.as_list()
    shape = tf.constant([count, dimension], tf.int64)
    gradients = tf.scatter_nd(rows.ids[:, tf.newaxis], rows.gradients, shape)
    ids = tf.range(tf.constant(count, tf.int64))
    return dataclasses.replace(rows, ids=ids, gradients=gradients)


def _limited(values: tf.Tensor, least: float | None, most: float | None) -> tf.Tensor:
    if least is not None:
        values = tf.maximum(values, least)
    if most is not None:
        values = tf.minimum(values, most)
    return values


def _decayed(
    parameters: p.OptimizationParameters, weights: tf.Tensor, learning_rate: tf.Tensor
) -> tf.Tensor:
    if not parameters.weight_decay_factor:
        return weights
    part = tf.constant(parameters.weight_decay_factor, tf.float32)
    if parameters.multiply_weight_decay_factor_by_learning_rate:
        part *= learning_rate
    return weights - part * weights


def _descend(parameters: p.StochasticGradientDescentParameters, read: Read) -> Updated:
    """w -= lr g"""
    del parameters
    w, _, g, rate = read
    return w - rate * g, []


def _adagrad(parameters: p.AdagradParameters, read: Read) -> Updated:
    """a += g^2; w -= lr g / sqrt(a). Duchi et al., 2011, https://jmlr.org/papers/v12/duchi11a.html"""
    del parameters
    w, [a], g, rate = read
    a += tf.square(g)
    return w - rate * g * tf.math.rsqrt(a), [a]


def _proximal_adagrad(parameters: p.ProximalAdagradParameters, read: Read) -> Updated:
    """a += g^2; r = lr / sqrt(a); x = w - r g; w = sign(x) max(|x| - r l1, 0) / (1 + r l2).

    Duchi & Singer, 2009, https://jmlr.org/papers/v10/duchi09a.html
    """
    l1, l2 = parameters.l1_regularization_strength, parameters.l2_regularization_strength
    w, [a], g, rate = read
    a += tf.square(g)
    rate *= tf.math.rsqrt(a)
    x = w - rate * g
    return tf.sign(x) * tf.maximum(tf.abs(x) - rate * l1, 0.0) / (1.0 + rate * l2), [a]


def _momentum(parameters: p.MomentumParameters, read: Read) -> Updated:
    """a = momentum a + g; w -= lr a, or lr (g + momentum a) with Nesterov momentum.

    Sutskever et al., 2013, https://proceedings.mlr.press/v28/sutskever13.html
    """
    w, [a], g, rate = read
    a = parameters.momentum * a + g
    step = g + parameters.momentum * a if parameters.use_nesterov else a
    return w - rate * step, [a]


def _rms_prop(parameters: p.RMSPropParameters, read: Read) -> Updated:
    """s = rho s + (1 - rho) g^2; d = momentum d + lr g / sqrt(s + epsilon); w -= d.

    Tieleman & Hinton, 2012, as in `tf.compat.v1.train.RMSPropOptimizer`.
    """
    w, [s, d], g, rate = read
    s = parameters.rho * s + (1 - parameters.rho) * tf.square(g)
    d = parameters.momentum * d + rate * g * tf.math.rsqrt(s + parameters.epsilon)
    return w - d, [s, d]


def _ftrl(parameters: p.FtrlParameters, read: Read) -> Updated:
    """McMahan et al., 2013, https://research.google.com/pubs/archive/41159.pdf, algorithm 1.

    With q = `learning_rate_power`:
    - b = a + g^2; z += g - (b^-q - a^-q) w / lr; a = b
    - w = -(z - clip(z, -l1, l1)) / ((beta + a^-q) / lr + 2 l2)
    With `multiply_linear_by_learning_rate` the slot holds z lr in place of z.
    """
    w, [before, z], g, rate = read
    after = before + tf.square(g)
    power = -parameters.learning_rate_power
    root, change = after**power, after**power - before**power
    l1, l2 = parameters.l1_regularization_strength, parameters.l2_regularization_strength
    if parameters.multiply_linear_by_learning_rate:
        z += rate * g - change * w
        limit, divisor = l1 * rate, parameters.beta + root + 2 * l2 * rate
    else:
        z += g - change * w / rate
        limit, divisor = tf.constant(l1, tf.float32), (parameters.beta + root) / rate + 2 * l2
    return (tf.clip_by_value(z, -limit, limit) - z) / divisor, [after, z]


def _adam(parameters: p.AdamParameters, read: Read) -> Updated:
    """m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= lr m / sqrt(v + epsilon^2).

    Kingma & Ba, 2015, https://arxiv.org/abs/1412.6980, without bias correction, as on TPU. Without
    `sum_inside_sqrt`, the divisor is `sqrt(v) + epsilon`.
    """
    b1, b2, epsilon = parameters.beta1, parameters.beta2, parameters.epsilon
    w, [m, v], g, rate = read
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * tf.square(g)
    inside = parameters.sum_inside_sqrt
    divisor = tf.sqrt(v + epsilon**2) if inside else tf.sqrt(v) + epsilon
    return w - rate * m / divisor, [m, v]


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
"""Slots and formula by class of the optimizer's parameters."""
