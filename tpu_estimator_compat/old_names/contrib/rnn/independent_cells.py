"""Cells of `tf.contrib.rnn` whose units see only their own state (https://arxiv.org/abs/1803.04831)."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell, LSTMStateTuple

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    LSTMState,
    OneTensorState,
    known_depth,
)


class _IndependentCell(OneTensorState, LayerRNNCell):
    """A cell with a matrix for its input and a vector for its state."""

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
    """The cell of an independently recurrent network."""

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
    """An LSTM cell with vectors for its state (https://arxiv.org/abs/1903.08023)."""

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


__all__ = ["IndRNNCell", "IndyLSTMCell"]
