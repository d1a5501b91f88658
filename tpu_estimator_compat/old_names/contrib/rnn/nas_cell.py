"""The cell of `tf.contrib.rnn` that neural architecture search found."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell, LSTMStateTuple

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import LSTMState, known_depth


class NASCell(LSTMState, LayerRNNCell):
    """The cell that neural architecture search found (https://arxiv.org/abs/1611.01578).

    `use_bias` is about the part that comes from the output before.
    """

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


__all__ = ["NASCell"]
