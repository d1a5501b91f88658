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

    def _weights(self, names: tuple[str, str, str], shape: list[int], bias: float) -> list[Any]:
        """The matrix, the vector and the bias of some gates, by their names."""
        uniform = tf.random_uniform_initializer(-1, 1, dtype=self.dtype)
        constant = tf.constant_initializer(bias, dtype=self.dtype)
        of_bias = constant if self._bias_initializer is None else self._bias_initializer
        width = shape[1]
        return [
            self.add_weight(names[0], shape, initializer=self._kernel_initializer),
            self.add_weight(names[1], [1, width], initializer=uniform),
            self.add_weight(names[2], [width], initializer=of_bias),
        ]


def _sum(inputs: tf.Tensor, state: tf.Tensor, weights: list[Any]) -> tf.Tensor:
    of_inputs, of_state, bias = weights
    return tf.nn.bias_add(tf.matmul(inputs, of_inputs) + state * of_state, bias)


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

    def build(self, input_shape: Any) -> None:
        shape = [known_depth(input_shape), self._num_units]
        self._unit = self._weights(("kernel_w", "kernel_u", "bias"), shape, 0.0)
        self.built = True

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        state = self._activation(_sum(inputs, state, self._unit))
        return state, state


class IndyLSTMCell(LSTMState, _IndependentCell):
    """An LSTM cell with vectors for its state (https://arxiv.org/abs/1903.08023)."""

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

    def build(self, input_shape: Any) -> None:
        shape = [known_depth(input_shape), 4 * self._num_units]
        self._gates = self._weights(("kernel_w", "kernel_u", "bias"), shape, 0.0)
        self.built = True

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        cell, hidden = state
        gates = _sum(inputs, tf.tile(hidden, [1, 4]), self._gates)
        write, new, keep, show = tf.split(gates, 4, axis=1)
        kept = cell * tf.sigmoid(keep + self._forget_bias)
        cell = kept + tf.sigmoid(write) * self._activation(new)
        hidden = self._activation(cell) * tf.sigmoid(show)
        return hidden, LSTMStateTuple(cell, hidden)


__all__ = ["IndRNNCell", "IndyLSTMCell"]
