"""Cells of `tf.contrib.rnn` with other gates than an LSTM's."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    OneTensorState,
    known_depth,
    linear,
)


class UGRNNCell(OneTensorState, RNNCell):
    """A cell with one gate, for update (https://arxiv.org/abs/1611.09913).

    `forget_bias` is added to the gate, which keeps the state.
    """

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
    """A simple recurrent unit (https://arxiv.org/abs/1709.02755): its gates see inputs alone."""

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


__all__ = ["SRUCell", "UGRNNCell"]
