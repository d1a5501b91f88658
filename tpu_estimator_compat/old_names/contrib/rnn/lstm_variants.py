"""LSTM cells of `tf.contrib.rnn` in groups, and in phases."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import LSTMState, linear


class GLSTMCell(LSTMState, RNNCell):
    """LSTM cells side by side, each with its part of input and state (arXiv:1703.10722).

    `activation` is that of the output; new values have tanh. The number of groups must divide
    `num_units`, `num_proj` and the depth of the input.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        for name, depth in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if depth % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups")
        self._num_units = num_units
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._initializer = initializer

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        depth = inputs.shape.as_list()[1]
        if depth is None:
            raise ValueError("input size must be statically known")
        if depth % self._groups:
            raise ValueError(
                f"input size ({depth}) must be divisible by number_of_groups ({self._groups})"
            )
        cell, hidden = state
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            write, new, keep, show = self._gates(inputs, hidden)
        cell = tf.sigmoid(keep + self._forget_bias) * cell + tf.sigmoid(write) * tf.tanh(new)
        output = tf.sigmoid(show) * self._activation(cell)
        if self._num_proj is not None:
            with tf.variable_scope("projection"):
                output = linear([output], self._num_proj, with_bias=False)
        return output, LSTMStateTuple(cell, output)

    def _gates(self, inputs: tf.Tensor, hidden: tf.Tensor) -> list[tf.Tensor]:
        """Each gate is that of all groups, side by side, and a bias."""
        of_groups = []
        parts = zip(
            tf.split(inputs, self._groups, axis=1),
            tf.split(hidden, self._groups, axis=1),
            strict=True,
        )
        for i, part in enumerate(parts):
            with tf.variable_scope(f"group{i}"):
                width = 4 * self._num_units // self._groups
                gates = linear([tf.concat(part, 1)], width, with_bias=False)
            of_groups.append(tf.split(gates, 4, axis=1))
        zeros = tf.zeros_initializer()
        return [
            tf.nn.bias_add(
                tf.concat(gate, 1),
                tf.get_variable(f"bias_{name}", [self._num_units], inputs.dtype, initializer=zeros),
            )
            for name, gate in zip("ijfo", zip(*of_groups, strict=True), strict=True)
        ]


class PhasedLSTMCell(LSTMState, RNNCell):
    """An LSTM cell that is open in a part of a period (https://arxiv.org/abs/1610.09513).

    Its inputs are times [batch, 1], and features [batch, depth]. `ratio_on` is the first value of
    that part, `leak` the openness outside of it; periods begin between `period_init_min` and
    `period_init_max`.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: Any = 0.001,
        ratio_on: Any = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: Any = 1.0,
        period_init_max: Any = 1000.0,
        reuse: bool | None = None,
    ):
        # Times may be of another type than features: no cast to one of them.
        super().__init__(_reuse=reuse, autocast=False)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._periods = (period_init_min, period_init_max)

    def call(self, inputs: Any, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        old_cell, old_hidden = state
        time, features = inputs
        seen = [features, old_hidden]
        with tf.variable_scope("mask_gates"):
            masks = tf.sigmoid(linear([*seen, *self._peephole(old_cell)], 2 * self._num_units))
            write, keep = tf.split(masks, 2, axis=1)
        with tf.variable_scope("new_input"):
            new = tf.tanh(linear(seen, self._num_units))
        cell = old_cell * keep + write * new
        with tf.variable_scope("output_gate"):
            show = tf.sigmoid(linear([*seen, *self._peephole(cell)], self._num_units))
        openness = self._openness(time)
        hidden = openness * (tf.tanh(cell) * show) + (1 - openness) * old_hidden
        cell = openness * cell + (1 - openness) * old_cell
        return hidden, LSTMStateTuple(cell, hidden)

    def _peephole(self, cell: tf.Tensor) -> list[tf.Tensor]:
        return [cell] if self._use_peepholes else []

    def _openness(self, time: tf.Tensor) -> tf.Tensor:
        """The openness of the cell: it opens, then closes, then leaks."""
        units = [self._num_units]
        period = tf.get_variable("period", units, initializer=_log_uniform(*self._periods))
        phases = tf.random_uniform_initializer(0.0, period.initial_value)
        phase = tf.get_variable("phase", units, initializer=phases)
        ratio_on = tf.get_variable(
            "ratio_on",
            units,
            initializer=tf.constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        length = tf.cast(period, time.dtype)
        since = time - tf.cast(phase, time.dtype)
        # The remainder, with the gradient of what it is the remainder of.
        since += tf.stop_gradient(tf.math.mod(since, length) - since)
        ratio = tf.cast(since / length, tf.float32)
        opening = 2 * ratio / ratio_on
        openness = tf.where(ratio < ratio_on, 2 - opening, self._leak * ratio)
        return tf.where(ratio < 0.5 * ratio_on, opening, openness)


def _log_uniform(low: Any, high: Any) -> Any:
    """An initializer whose values have uniform logarithms."""

    def values(shape: Any, dtype: tf.DType = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        return tf.exp(tf.random_uniform(shape, tf.math.log(low), tf.math.log(high), dtype))

    return values


__all__ = ["GLSTMCell", "PhasedLSTMCell"]
