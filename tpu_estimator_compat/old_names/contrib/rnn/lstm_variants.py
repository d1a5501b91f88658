"""LSTM cells of `tf.contrib.rnn`: coupled gates, groups, phases."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    LSTMState,
    known_depth,
    linear,
    normalized,
)


class CoupledInputForgetGateLSTMCell(LSTMState, RNNCell):
    """An LSTM cell with a coupled input and forget gate (https://arxiv.org/abs/1503.04069).

    `initializer` is ignored, as in the original: kernels use the scope's. Each kernel consists of
    `num_unit_shards` or `num_proj_shards` variables. With `layer_norm`, gates and state are
    normalized, and no bias is added.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ):
        super().__init__(_reuse=reuse)
        del initializer
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._forget_bias = forget_bias
        self._activation = activation or tf.tanh
        self._shards = (num_unit_shards, num_proj_shards)
        self._state_is_tuple = state_is_tuple
        self._layer_norm = layer_norm
        self._norm_gain, self._norm_shift = norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        sizes = super().state_size
        return sizes if self._state_is_tuple else sum(sizes)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        depth, units = known_depth(inputs.shape), self._num_units
        if not self._state_is_tuple:
            state = tf.split(state, [units, self.output_size], axis=1)
        cell, hidden = state
        shape = (depth + self.output_size, 3 * units)
        product = tf.matmul(
            tf.concat([inputs, hidden], 1), _sharded("W", shape, inputs.dtype, self._shards[0])
        )
        new, keep, show = self._gates(product)
        of_keep = self._peephole("W_F_diag", inputs.dtype)
        of_show = self._peephole("W_O_diag", inputs.dtype)
        kept = tf.sigmoid(keep + self._forget_bias + of_keep(cell))
        cell = self._norm(kept * cell + (1 - kept) * self._activation(new), "state")
        output = tf.sigmoid(show + of_show(cell)) * self._activation(cell)
        if self._num_proj is not None:
            shape = (units, self._num_proj)
            output = tf.matmul(output, _sharded("W_P", shape, inputs.dtype, self._shards[1]))
            if self._proj_clip is not None:
                output = tf.clip_by_value(output, -self._proj_clip, self._proj_clip)
        if self._state_is_tuple:
            return output, LSTMStateTuple(cell, output)
        return output, tf.concat([cell, output], 1)

    def _peephole(self, name: str, dtype: tf.DType) -> Callable[..., Any]:
        if not self._use_peepholes:
            return lambda cell: 0.0
        return functools.partial(tf.multiply, tf.get_variable(name, [self._num_units], dtype))

    def _gates(self, product: tf.Tensor) -> list[tf.Tensor]:
        # Checkpoints hold the bias even if it is not added.
        zeros = tf.zeros_initializer()
        bias = tf.get_variable("B", [3 * self._num_units], product.dtype, initializer=zeros)
        gates = product if self._layer_norm else tf.nn.bias_add(product, bias)
        parts = zip(tf.split(gates, 3, axis=1), ("transform", "forget", "output"), strict=True)
        return [self._norm(part, name) for part, name in parts]

    def _norm(self, tensor: tf.Tensor, scope: str) -> tf.Tensor:
        if not self._layer_norm:
            return tensor
        return normalized(tensor, scope, self._norm_gain, self._norm_shift)


def _sharded(name: str, shape: tuple[int, int], dtype: tf.DType, shards: int) -> tf.Tensor:
    """Concatenates variables `NAME_0`, `NAME_1` and so on, with nearly equal numbers of rows."""
    rows, width = shape
    if shards > rows:
        raise ValueError(f"Too many shards: shape={[rows, width]}, num_shards={shards}")
    counts = [rows // shards + (i < rows % shards) for i in range(shards)]
    parts = [tf.get_variable(f"{name}_{i}", [n, width], dtype) for i, n in enumerate(counts)]
    return parts[0] if shards == 1 else tf.concat(parts, 0)


class GLSTMCell(LSTMState, RNNCell):
    """Grouped LSTM cells, each with its part of input and state (arXiv:1703.10722).

    `activation` applies to the output; new values use tanh. The number of groups must divide
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
    """An LSTM cell that is open for a part of a period (https://arxiv.org/abs/1610.09513).

    Inputs are times [batch, 1] and features [batch, depth]. `ratio_on` is the initial open part of
    the period, `leak` the openness outside of it. Initial periods are between `period_init_min` and
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
        # Times and features may have different dtypes, so neither is cast.
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
        """The cell's openness at a time: rises, falls, then leaks."""
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
        # The remainder, with the gradient of the dividend.
        since += tf.stop_gradient(tf.math.mod(since, length) - since)
        ratio = tf.cast(since / length, tf.float32)
        opening = 2 * ratio / ratio_on
        openness = tf.where(ratio < ratio_on, 2 - opening, self._leak * ratio)
        return tf.where(ratio < 0.5 * ratio_on, opening, openness)


def _log_uniform(low: Any, high: Any) -> Any:
    def values(shape: Any, dtype: tf.DType = tf.float32, partition_info: Any = None) -> tf.Tensor:
        del partition_info
        return tf.exp(tf.random_uniform(shape, tf.math.log(low), tf.math.log(high), dtype))

    return values


__all__ = ["CoupledInputForgetGateLSTMCell", "GLSTMCell", "PhasedLSTMCell"]
