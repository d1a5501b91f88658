"""Cells that compute the same as cuDNN, and conversions of their variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import GRUCell, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.fused_rnn import LSTMBlockCell


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    def __init__(self, num_units: int, reuse: bool | None = None):
        name = "cudnn_compatible_lstm_cell"
        super().__init__(num_units, forget_bias=0, reuse=reuse, name=name)


class CudnnCompatibleGRUCell(GRUCell):
    """A GRU cell compatible with `CudnnGRU`: applies the reset gate after the product."""

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None):
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, inputs_shape: Any) -> None:
        depth, units = tf.TensorShape(inputs_shape).as_list()[-1], self._num_units
        if depth is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}")

        def projection(name: str, depth: int, units: int, bias: float) -> tuple[Any, Any]:
            kernel = self.add_weight(
                f"{name}/kernel", [depth, units], initializer=self._kernel_initializer
            )
            first = self._bias_initializer or tf.constant_initializer(bias)
            return kernel, self.add_weight(f"{name}/bias", [units], initializer=first)

        self._gates = projection("gates", depth + units, 2 * units, 1.0)
        self._of_input = projection("candidate/input_projection", depth, units, 0.0)
        self._of_state = projection("candidate/hidden_projection", units, units, 0.0)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = tf.sigmoid(_projected(tf.concat([inputs, state], 1), *self._gates))
        reset, update = tf.split(gates, 2, axis=1)
        candidate = _projected(inputs, *self._of_input)
        candidate += reset * _projected(state, *self._of_state)
        new = (1 - update) * self._activation(candidate) + update * state
        return new, new


def _projected(values: Any, kernel: Any, bias: Any) -> Any:
    return tf.nn.bias_add(tf.matmul(values, kernel), bias)


class GateCell(RNNCell):
    """One direction of one layer, for `tf.nn.dynamic_rnn`.

    Kernels are one [units, depth] per gate for the input, then one [units, units] per gate for the
    state; biases are [units], in the same order. The state of an LSTM has two tensors, others one.
    """

    def __init__(self, mode: str, kernels: Sequence[Any], biases: Sequence[Any]):
        super().__init__()
        self._mode, self._units = mode, biases[0].shape[0]
        gates = len(kernels) // 2
        self._of_input, self._of_state = (
            (tf.concat(kernels[part], 0), tf.concat(biases[part], 0))
            for part in (slice(gates), slice(gates, None))
        )

    @property
    def state_size(self) -> Any:
        return (self._units, self._units) if self._mode == "lstm" else (self._units,)

    @property
    def output_size(self) -> int:
        return int(self._units)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        kernel, bias = self._of_input
        x = tf.nn.bias_add(tf.matmul(inputs, kernel, transpose_b=True), bias)
        kernel, bias = self._of_state
        h = tf.nn.bias_add(tf.matmul(state[0], kernel, transpose_b=True), bias)
        if self._mode == "lstm":
            enter, forget, new, leave = tf.split(x + h, 4, axis=1)
            memory = tf.sigmoid(forget) * state[1] + tf.sigmoid(enter) * tf.tanh(new)
            output = tf.sigmoid(leave) * tf.tanh(memory)
            return output, (output, memory)
        if self._mode == "gru":
            (reset, update, new), of_state = tf.split(x, 3, axis=1), tf.split(h, 3, axis=1)
            reset, update = tf.sigmoid(reset + of_state[0]), tf.sigmoid(update + of_state[1])
            new = tf.tanh(new + reset * of_state[2])
            output = (1 - update) * new + update * state[0]
        else:
            output = (tf.nn.relu if self._mode == "rnn_relu" else tf.tanh)(x + h)
        return output, (output,)


def joined(kernels: Sequence[Any], order: Sequence[int], gates: int) -> Any:
    """The kernel of a cell, [depth + units, gates * units], from kernels by gate."""
    rows = [tf.concat([kernels[g], kernels[g + gates]], 1) for g in order]
    return tf.transpose(tf.concat(rows, 0))


def taken_apart(kernel: Any, order: Sequence[int], depth: int) -> list[Any]:
    """The inverse of `joined`: kernels by gate, first those of the input."""
    rows = tf.split(tf.transpose(kernel), len(order), 0)
    rows = [rows[order.index(gate)] for gate in range(len(order))]
    return [row[:, :depth] for row in rows] + [row[:, depth:] for row in rows]


def halves(bias: Any, order: Sequence[int]) -> list[Any]:
    """Biases by gate, first those of the input.

    A cell has the sum of the input's bias and the state's. Each gets half, as in TensorFlow 1.
    """
    sums = tf.split(bias, len(order))
    return [0.5 * sums[order.index(gate)] for gate in range(len(order))] * 2
