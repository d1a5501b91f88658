"""Cells of `tf.contrib.rnn` with fewer or other gates than an LSTM."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell, LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    LSTMState,
    OneTensorState,
    known_depth,
    linear,
)


class UGRNNCell(OneTensorState, RNNCell):
    """An update gate RNN cell (https://arxiv.org/abs/1611.09913); `forget_bias` is the gate's."""

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        known_depth(inputs.shape)
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            gates = linear([tf.concat([inputs, state], 1)], 2 * self._num_units)
        gate, new = tf.split(gates, 2, axis=1)
        keep = tf.sigmoid(gate + self._forget_bias)
        state = keep * state + (1.0 - keep) * self._activation(new)
        return state, state


class SRUCell(OneTensorState, LayerRNNCell):
    """A simple recurrent unit (https://arxiv.org/abs/1709.02755): gates depend on inputs only."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self.input_spec = tf_keras.layers.InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation or tf.tanh

    def build(self, input_shape: Any) -> None:
        self._kernel = self.add_weight("kernel", [known_depth(input_shape), 4 * self._num_units])
        zeros = tf.zeros_initializer()
        self._bias = self.add_weight("bias", [2 * self._num_units], initializer=zeros)
        self.built = True

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        new, forget, reset, skipped = tf.split(tf.matmul(inputs, self._kernel), 4, axis=1)
        gates = tf.nn.bias_add(tf.concat([forget, reset], 1), self._bias)
        forget, reset = tf.split(tf.sigmoid(gates), 2, axis=1)
        state = forget * state + (1.0 - forget) * new
        return reset * self._activation(state) + (1.0 - reset) * skipped, state


class _IndependentCell(OneTensorState, LayerRNNCell):
    """A cell whose units see only their own state (https://arxiv.org/abs/1803.04831)."""

    _GATES = 1

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = tf_keras.layers.InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation or tf.tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: Any) -> None:
        width = self._GATES * self._num_units
        shape = [known_depth(input_shape), width]
        uniform = tf.random_uniform_initializer(-1, 1, dtype=self.dtype)
        zeros = tf.constant_initializer(0.0, dtype=self.dtype)
        of_bias = zeros if self._bias_initializer is None else self._bias_initializer
        self._kernel = self.add_weight("kernel_w", shape, initializer=self._kernel_initializer)
        self._factors = self.add_weight("kernel_u", [1, width], initializer=uniform)
        self._bias = self.add_weight("bias", [width], initializer=of_bias)
        self.built = True

    def _sum(self, inputs: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(tf.matmul(inputs, self._kernel) + state * self._factors, self._bias)


class IndRNNCell(_IndependentCell):
    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        state = self._activation(self._sum(inputs, state))
        return state, state


class IndyLSTMCell(LSTMState, _IndependentCell):
    """An LSTM cell with elementwise state weights (https://arxiv.org/abs/1903.08023)."""

    _GATES = 4

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(
            num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype
        )
        self._forget_bias = forget_bias

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        cell, hidden = state
        gates = self._sum(inputs, tf.tile(hidden, [1, 4]))
        write, new, keep, show = tf.split(gates, 4, axis=1)
        kept = cell * tf.sigmoid(keep + self._forget_bias)
        cell = kept + tf.sigmoid(write) * self._activation(new)
        hidden = self._activation(cell) * tf.sigmoid(show)
        return hidden, LSTMStateTuple(cell, hidden)


class NASCell(LSTMState, LayerRNNCell):
    """NAS cell (https://arxiv.org/abs/1611.01578); `use_bias` is for the recurrent part."""

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ):
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias

    def build(self, input_shape: Any) -> None:
        depth, width = known_depth(input_shape), 8 * self._num_units
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, width])
        self.kernel = self.add_weight("kernel", [depth, width])
        if self._use_bias:
            self.bias = self.add_weight("bias", [width], initializer=tf.zeros_initializer())
        if self._num_proj is not None:
            shape = [self._num_units, self._num_proj]
            self.projection_weights = self.add_weight("projection_weights", shape)
        self.built = True

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        cell, hidden = state
        recurrent = tf.matmul(hidden, self.recurrent_kernel)
        if self._use_bias:
            recurrent = tf.nn.bias_add(recurrent, self.bias)
        x = tf.split(tf.matmul(inputs, self.kernel), 8, axis=1)
        h = tf.split(recurrent, 8, axis=1)
        left = tf.tanh(tf.sigmoid(x[0] + h[0]) * tf.nn.relu(x[1] + h[1]))
        right = tf.tanh(tf.sigmoid(x[2] + h[2]) + tf.nn.relu(x[3] * h[3]))
        product = tf.tanh(tf.tanh(x[4] + h[4]) * tf.sigmoid(x[5] + h[5]))
        gate = tf.sigmoid(tf.tanh(x[6] + h[6]) + tf.sigmoid(x[7] + h[7]))
        cell = tf.tanh(left + cell) * right
        output = tf.tanh(cell * tf.tanh(product + gate))
        if self._num_proj is not None:
            output = tf.matmul(output, self.projection_weights)
        return output, LSTMStateTuple(cell, output)


__all__ = ["IndRNNCell", "IndyLSTMCell", "NASCell", "SRUCell", "UGRNNCell"]
