"""The LSTM cell of `tf.contrib.rnn` whose input gate and forget gate are one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    LSTMState,
    known_depth,
    normalized,
)


class CoupledInputForgetGateLSTMCell(LSTMState, RNNCell):
    """An LSTM cell that writes where it forgets (https://arxiv.org/abs/1503.04069).

    `initializer` is ignored, as it was: kernels have the scope's. Shards are the variables that
    make up a kernel. With `layer_norm` gates and state are normalized, and no bias is added.
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
        """A function of the cell's state that gives the summand of a gate; 0 without peepholes."""
        if not self._use_peepholes:
            return lambda cell: 0.0
        return functools.partial(tf.multiply, tf.get_variable(name, [self._num_units], dtype))

    def _gates(self, product: tf.Tensor) -> list[tf.Tensor]:
        # The bias is in checkpoints even where it is not added.
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
    """Variables `NAME_0`, `NAME_1` and so on, of about as many rows each, as one tensor."""
    rows, width = shape
    if shards > rows:
        raise ValueError(f"Too many shards: shape={[rows, width]}, num_shards={shards}")
    counts = [rows // shards + (i < rows % shards) for i in range(shards)]
    parts = [tf.get_variable(f"{name}_{i}", [n, width], dtype) for i, n in enumerate(counts)]
    return parts[0] if shards == 1 else tf.concat(parts, 0)


__all__ = [
    "CoupledInputForgetGateLSTMCell",
]
