"""Parts of cells: state sizes, and layers with variables from `get_variable`."""

from __future__ import annotations

import operator
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple

from tpu_estimator_compat.old_names.contrib import slim


class OneTensorState:
    """Sizes of a cell whose state is its output, of depth `num_units`."""

    _num_units: int
    state_size = output_size = property(operator.attrgetter("_num_units"))


class LSTMState:
    """Sizes of a cell whose state is an `LSTMStateTuple`, and whose output may be projected."""

    _num_units: int
    _num_proj: int | None = None

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units


def known_depth(shape: Any) -> int:
    """The last dimension of a cell's input; ValueError if it is not static."""
    depth = tf.TensorShape(shape).as_list()[-1]
    if depth is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return int(depth)


def linear(inputs: list[tf.Tensor], width: int, with_bias: bool = True) -> tf.Tensor:
    """A linear layer on tensors [batch, depth]: returns [batch, width].

    Variables are the scope's `kernel` and `bias`; the bias, at first zeros, is never partitioned.
    """
    shapes = [tensor.shape for tensor in inputs]
    if any(shape.rank != 2 for shape in shapes):
        raise ValueError(f"linear is expecting 2D arguments: {shapes}")
    depths = [shape.as_list()[1] for shape in shapes]
    if None in depths:
        raise ValueError(f"linear expects shape[1] to be provided for shapes {shapes}")
    dtype = inputs[0].dtype
    kernel = tf.get_variable("kernel", [sum(depths), width], dtype)
    outputs = tf.matmul(inputs[0] if len(inputs) == 1 else tf.concat(inputs, 1), kernel)
    if not with_bias:
        return outputs
    with tf.variable_scope(tf.get_variable_scope()) as scope:
        scope.set_partitioner(None)
        bias = tf.get_variable("bias", [width], dtype, initializer=tf.zeros_initializer())
    return tf.nn.bias_add(outputs, bias)


def normalized(
    tensor: tf.Tensor, scope: str, gain: float, shift: float, dtype: tf.DType = tf.float32
) -> tf.Tensor:
    """Layer normalization of [batch, depth]: `gamma` and `beta` start as `gain` and `shift`."""
    with tf.variable_scope(scope):
        for name, value in (("gamma", gain), ("beta", shift)):
            initializer = tf.constant_initializer(value)
            tf.get_variable(name, tensor.shape[-1:], dtype, initializer=initializer)
    return slim.layers.layer_norm(tensor, reuse=True, scope=scope)


__all__ = ["LSTMState", "OneTensorState", "known_depth", "linear", "normalized"]
