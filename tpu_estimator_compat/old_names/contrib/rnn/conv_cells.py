"""Convolutional LSTM cells of `tf.contrib.rnn` (https://arxiv.org/abs/1506.04214, no peepholes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell


class ConvLSTMCell(RNNCell):
    """An LSTM cell with a `conv_ndims`-dimensional convolution in place of the matrix product.

    `input_shape` is without the batch. With `skip_connection`, the output also has the channels of
    the input. The returned state has them too, so that the next step needs a larger kernel, as in
    the original. `initializers` is ignored.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ):
        super().__init__(name=name)
        del initializers
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._dimensions = conv_ndims
        self._image_shape = tuple(input_shape)
        self._channels = output_channels
        self._kernel_shape = tuple(kernel_shape)
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> LSTMStateTuple:
        shape = tf.TensorShape([*self._image_shape[:-1], self._channels])
        return LSTMStateTuple(shape, shape)

    @property
    def output_size(self) -> tf.TensorShape:
        skipped = self._image_shape[-1] if self._skip_connection else 0
        return tf.TensorShape([*self._image_shape[:-1], self._channels + skipped])

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        cell, hidden = state
        write, new, keep, show = tf.split(self._gates(inputs, hidden), 4, axis=-1)
        cell = tf.sigmoid(keep + self._forget_bias) * cell + tf.sigmoid(write) * tf.tanh(new)
        output = tf.tanh(cell) * tf.sigmoid(show)
        if self._skip_connection:
            output = tf.concat([output, inputs], axis=-1)
        return output, LSTMStateTuple(cell, output)

    def _gates(self, inputs: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
        shapes = [inputs.shape.as_list(), hidden.shape.as_list()]
        if any(len(shape) not in (3, 4, 5) for shape in shapes):
            raise ValueError(f"Conv Linear expects 3D, 4D or 5D arguments: {shapes}")
        if len(shapes[0]) != len(shapes[1]):
            raise ValueError(f"Conv Linear expects all args to be of same Dimension: {shapes}")
        both, width = tf.concat([inputs, hidden], -1), 4 * self._channels
        shape = [*self._kernel_shape, both.shape.as_list()[-1], width]
        kernel = tf.get_variable("kernel", shape, inputs.dtype)
        gates = tf.nn.convolution(both, kernel, padding="SAME")
        if not self._use_bias:
            return gates
        zeros = tf.zeros_initializer()
        return gates + tf.get_variable("biases", [width], inputs.dtype, initializer=zeros)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` for sequences; only the name is positional."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` for images; only the name is positional."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` for volumes; only the name is positional."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=3, name=name, **kwargs)


__all__ = ["Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell"]
