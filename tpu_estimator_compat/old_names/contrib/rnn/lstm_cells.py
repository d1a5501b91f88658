"""LSTM cells of `tf.contrib.rnn` with peepholes and projections: normalized, and coupled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import (
    beside,
    bias_of,
    clipped,
    known_depth,
    linear,
    lstm_state_size,
    normalized,
    shapes_depths,
)


class _ProjectedLSTMCell(RNNCell):
    """An LSTM cell with peepholes and a projected output, as both may be.

    Args:
      num_units: depth of the cell's state.
      num_proj: depth of the output; None for `num_units`, without a projection.
      proj_clip: the largest absolute value of a projected output; None for any.
      use_peepholes: whether gates see the cell's state.
      cell_clip: the largest absolute value of the cell's state; None for any.
      forget_bias: is added to the forget gate.
      activation: of new values and of the output; None for tanh.
      initializer: of kernels; None for the scope's.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None,
        proj_clip: float | None,
        use_peepholes: bool,
        cell_clip: float | None,
        forget_bias: float,
        activation: Any,
        initializer: Any,
        reuse: bool | None,
    ):
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._forget_bias = forget_bias
        self._activation = activation or tf.tanh
        self._initializer = initializer

    @property
    def state_size(self) -> Any:
        """An `LSTMStateTuple` of `num_units` and the output's depth."""
        return lstm_state_size(self._num_units, self._num_proj)

    @property
    def output_size(self) -> int:
        """`num_proj`, or `num_units`."""
        return self._num_proj or self._num_units

    def _peepholes(self, names: tuple[str, ...], dtype: tf.DType) -> list[Callable[..., Any]]:
        """Functions of the cell's state: what gates see of it; without peepholes, nothing."""
        if not self._use_peepholes:
            return [lambda cell: 0.0] * len(names)
        weights = [tf.get_variable(name, [self._num_units], dtype) for name in names]
        return [functools.partial(tf.multiply, weight) for weight in weights]


class LayerNormLSTMCell(_ProjectedLSTMCell):
    """An LSTM cell with layer normalization (https://arxiv.org/abs/1607.06450).

    Args:
      num_units: depth of the cell's state.
      use_peepholes: whether gates see the cell's state.
      cell_clip: the largest absolute value of the cell's state; None for any.
      initializer: of kernels; None for the scope's.
      num_proj: depth of the output; None for `num_units`, without a projection.
      proj_clip: the largest absolute value of a projected output; None for any.
      forget_bias: is added to the forget gate.
      activation: of new values and of the output; None for tanh.
      layer_norm: whether gates and state are normalized, and no bias is added.
      norm_gain: first value of the gains.
      norm_shift: first value of the shifts.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1.0,
        activation: Any = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        reuse: bool | None = None,
    ):
        super().__init__(
            num_units,
            num_proj,
            proj_clip,
            use_peepholes,
            cell_clip,
            forget_bias,
            activation,
            initializer,
            reuse,
        )
        self._layer_norm = layer_norm
        self._norm_gain, self._norm_shift = norm_gain, norm_shift

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: an `LSTMStateTuple` of two tensors [batch, units].

        Returns:
          The output, and the new state.

        Raises:
          ValueError: the depth of the input is not known.
        """
        known_depth(inputs.shape)
        cell, hidden = state
        with tf.variable_scope(tf.get_variable_scope(), initializer=self._initializer):
            gates = self._gates(linear([inputs, hidden], 4 * self._num_units, with_bias=False))
            write, new, keep, show = gates
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            of_keep, of_write, of_show = self._peepholes(names, inputs.dtype)
            kept = tf.sigmoid(keep + self._forget_bias + of_keep(cell)) * cell
            cell = kept + tf.sigmoid(write + of_write(cell)) * self._activation(new)
            cell = clipped(self._norm(cell, "state"), self._cell_clip)
            output = tf.sigmoid(show + of_show(cell)) * self._activation(cell)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    output = linear([output], self._num_proj, with_bias=False)
                output = clipped(output, self._proj_clip)
        return output, LSTMStateTuple(cell, output)

    def _gates(self, product: tf.Tensor) -> list[tf.Tensor]:
        # The bias is in checkpoints even where it is not added.
        bias = bias_of(4 * self._num_units, product.dtype)
        gates = product if self._layer_norm else tf.nn.bias_add(product, bias)
        names = ("input", "transform", "forget", "output")
        parts = zip(tf.split(gates, 4, axis=1), names, strict=True)
        return [self._norm(part, name) for part, name in parts]

    def _norm(self, tensor: tf.Tensor, scope: str) -> tf.Tensor:
        if not self._layer_norm:
            return tensor
        return normalized(tensor, scope, self._norm_gain, self._norm_shift)


class WeightNormLSTMCell(_ProjectedLSTMCell):
    """An LSTM cell with weight normalization (https://arxiv.org/abs/1602.07868).

    Its variables are in a scope `wn_lstm_cell` in one of the same name, as they were.

    Args:
      num_units: depth of the cell's state.
      norm: whether columns of kernels are normalized, the inputs' apart from the state's.
      use_peepholes: whether gates see the cell's state.
      cell_clip: the largest absolute value of the cell's state; None for any.
      initializer: of kernels; None for the scope's.
      num_proj: depth of the output; None for `num_units`, without a projection.
      proj_clip: the largest absolute value of a projected output; None for any.
      forget_bias: is added to the forget gate.
      activation: of new values and of the output; None for tanh.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        norm: bool = True,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        forget_bias: float = 1,
        activation: Any = None,
        reuse: bool | None = None,
    ):
        super().__init__(
            num_units,
            num_proj,
            proj_clip,
            use_peepholes,
            cell_clip,
            forget_bias,
            activation,
            initializer,
            reuse,
        )
        # A name that layers of TensorFlow 1 look at: it is the scope around the one of `call`.
        self._scope = "wn_lstm_cell"
        self._norm = norm

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, LSTMStateTuple]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: an `LSTMStateTuple` of two tensors [batch, units].

        Returns:
          The output, and the new state.

        Raises:
          ValueError: the depth of the input is not known.
        """
        known_depth(inputs.shape)
        cell, hidden = state
        width = 4 * self._num_units
        with tf.variable_scope("wn_lstm_cell", initializer=self._initializer):
            product = self._linear([inputs, hidden], width)
            gates = tf.nn.bias_add(product, bias_of(width, inputs.dtype))
            write, new, keep, show = tf.split(gates, 4, axis=1)
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            of_keep, of_write, of_show = self._peepholes(names, inputs.dtype)
            kept = cell * tf.sigmoid(keep + self._forget_bias + of_keep(cell))
            cell = kept + tf.sigmoid(write + of_write(cell)) * self._activation(new)
            cell = clipped(cell, self._cell_clip)
            output = tf.sigmoid(show + of_show(cell)) * self._activation(cell)
            if self._num_proj is not None:
                with tf.variable_scope("projection"):
                    output = self._linear([output], self._num_proj)
                output = clipped(output, self._proj_clip)
        return output, LSTMStateTuple(cell, output)

    def _linear(self, inputs: list[tf.Tensor], width: int) -> tf.Tensor:
        if not self._norm:
            return linear(inputs, width, with_bias=False)
        depths = shapes_depths([tensor.shape for tensor in inputs])
        dtype = inputs[0].dtype
        kernel = tf.get_variable("kernel", [sum(depths), width], dtype)
        rows = [
            tf.nn.l2_normalize(part, axis=0) * tf.get_variable(f"norm_{i}", [width], dtype)
            for i, part in enumerate(tf.split(kernel, depths, axis=0))
        ]
        return tf.matmul(beside(inputs), tf.concat(rows, 0))


class CoupledInputForgetGateLSTMCell(_ProjectedLSTMCell):
    """An LSTM cell that writes what it forgets (https://arxiv.org/abs/1503.04069).

    Args:
      num_units: depth of the cell's state.
      use_peepholes: whether gates see the cell's state.
      initializer: ignored, as it was; kernels have the scope's.
      num_proj: depth of the output; None for `num_units`, without a projection.
      proj_clip: the largest absolute value of a projected output; None for any.
      num_unit_shards: the number of variables that make up the kernel.
      num_proj_shards: the number of variables that make up the projection.
      forget_bias: is added to the forget gate.
      state_is_tuple: whether the state is a tuple; otherwise it is one tensor.
      activation: of new values and of the output.
      reuse: whether variables are those that are there.
      layer_norm: whether gates and state are normalized, and no bias is added.
      norm_gain: first value of the gains.
      norm_shift: first value of the shifts.
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
        super().__init__(
            num_units,
            num_proj,
            proj_clip,
            use_peepholes,
            None,
            forget_bias,
            activation,
            initializer,
            reuse,
        )
        self._shards = (num_unit_shards, num_proj_shards)
        self._state_is_tuple = state_is_tuple
        self._layer_norm = layer_norm
        self._norm_gain, self._norm_shift = norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        """Sizes of the cell's state and of the output, or their sum."""
        sizes = super().state_size
        return sizes if self._state_is_tuple else sum(sizes)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        """One step.

        Args:
          inputs: [batch, depth].
          state: of `state_size`.

        Returns:
          The output, and the new state.

        Raises:
          ValueError: the depth of the input is not known, or there are more shards than rows.
        """
        depth, units = known_depth(inputs.shape), self._num_units
        if not self._state_is_tuple:
            state = tf.split(state, [units, self.output_size], axis=1)
        cell, hidden = state
        shape = (depth + self.output_size, 3 * units)
        product = tf.matmul(
            tf.concat([inputs, hidden], 1), _sharded("W", shape, inputs.dtype, self._shards[0])
        )
        new, keep, show = self._gates(product)
        of_keep, of_show = self._peepholes(("W_F_diag", "W_O_diag"), inputs.dtype)
        kept = tf.sigmoid(keep + self._forget_bias + of_keep(cell))
        cell = self._norm(kept * cell + (1 - kept) * self._activation(new), "state")
        output = tf.sigmoid(show + of_show(cell)) * self._activation(cell)
        if self._num_proj is not None:
            shape = (units, self._num_proj)
            output = tf.matmul(output, _sharded("W_P", shape, inputs.dtype, self._shards[1]))
            output = clipped(output, self._proj_clip)
        if self._state_is_tuple:
            return output, LSTMStateTuple(cell, output)
        return output, tf.concat([cell, output], 1)

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
    "LayerNormLSTMCell",
    "WeightNormLSTMCell",
]
