"""`tf.contrib.rnn`: cells and networks; most are those of `tf.nn.rnn_cell` and `tf.nn`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import rnn
from tf_keras.src.layers.rnn import legacy_cell_wrappers, legacy_cells
from tf_keras.src.layers.rnn.legacy_cells import LSTMStateTuple, RNNCell

from tpu_estimator_compat.old_names.contrib import taken_over
from tpu_estimator_compat.old_names.contrib.rnn import (
    cell_wrappers,
    conv_cells,
    fused_rnn,
    gated_cells,
    lstm_variants,
)
from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import LSTMState, normalized

_SAME = taken_over(
    globals(),
    {
        legacy_cells: """
            BasicLSTMCell BasicRNNCell GRUCell LSTMCell LSTMStateTuple LayerRNNCell MultiRNNCell
            RNNCell
        """,
        legacy_cell_wrappers: "DeviceWrapper DropoutWrapper ResidualWrapper",
        rnn: """
            best_effort_input_batch_size=_best_effort_input_batch_size
            transpose_batch_time=_transpose_batch_time
        """,
        tf.nn: "static_bidirectional_rnn static_rnn static_state_saving_rnn",
        cell_wrappers: """
            AttentionCellWrapper EmbeddingWrapper HighwayWrapper InputProjectionWrapper
            OutputProjectionWrapper
        """,
        conv_cells: "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell ConvLSTMCell",
        fused_rnn: "GRUBlockCell GRUBlockCellV2 LSTMBlockCell",
        gated_cells: "IndRNNCell IndyLSTMCell NASCell SRUCell UGRNNCell",
        lstm_variants: "CoupledInputForgetGateLSTMCell GLSTMCell PhasedLSTMCell",
    },
)


def _layers(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> Iterator[Any]:
    for cells, name in ((cells_fw, "fw"), (cells_bw, "bw")):
        if not cells:
            raise ValueError(f"Must specify at least one {name} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{name} must be a list of RNNCells (one per layer).")
    if len(cells_fw) != len(cells_bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for states, name in ((states_fw, "fw"), (states_bw, "bw")):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):
            raise ValueError(
                f"initial_states_{name} must be a list of state tensors (one per layer)."
            )
    unset = [None] * len(cells_fw)
    return zip(cells_fw, cells_bw, states_fw or unset, states_bw or unset, strict=True)


def stack_bidirectional_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: list[tf.Tensor],
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: tf.DType | None = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[tf.Tensor], tuple[Any, ...], tuple[Any, ...]]:
    """Bidirectional layers, unrolled over `inputs`, one tensor [batch, depth] per time.

    Each layer reads both directions of the layer below. Returns the last layer's outputs, one
    tensor [batch, forward + backward depth] per time, and the final states of all layers, forward
    and backward.
    """
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states, outputs = [], inputs
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw, *initial) in enumerate(layers):
            with tf.variable_scope(f"cell_{i}") as cell_scope:
                outputs, *final = tf.nn.static_bidirectional_rnn(
                    cell_fw, cell_bw, outputs, *initial, dtype, sequence_length, cell_scope
                )
            states.append(final)
    return outputs, tuple(forward for forward, _ in states), tuple(back for _, back in states)


def stack_bidirectional_dynamic_rnn(
    cells_fw: list[Any],
    cells_bw: list[Any],
    inputs: tf.Tensor,
    initial_states_fw: list[Any] | None = None,
    initial_states_bw: list[Any] | None = None,
    dtype: tf.DType | None = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[tf.Tensor, tuple[Any, ...], tuple[Any, ...]]:
    """`stack_bidirectional_rnn` on one tensor [batch, time, depth], in a `tf.while_loop`.

    Outputs are like `inputs`, with both directions' depths; both are time-major if `time_major`.
    """
    layers = _layers(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    of_loop = (parallel_iterations, swap_memory, time_major)
    states, layer = [], inputs
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw, *initial) in enumerate(layers):
            with tf.variable_scope(f"cell_{i}"):
                outputs, final = tf.nn.bidirectional_dynamic_rnn(
                    cell_fw, cell_bw, layer, sequence_length, *initial, dtype, *of_loop
                )
                layer = tf.concat(outputs, 2)
            states.append(final)
    return layer, tuple(forward for forward, _ in states), tuple(back for _, back in states)


class LayerNormBasicLSTMCell(LSTMState, RNNCell):
    """An LSTM cell with layer normalization (https://arxiv.org/abs/1607.06450).

    Dropout applies to the new values of the state (https://arxiv.org/abs/1603.05118). Without
    `layer_norm` there is a bias. `input_size` is ignored.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        del input_size
        self._num_units = num_units
        self._activation = activation
        self._forget_bias = forget_bias
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        c, h = state
        i, j, f, o = tf.split(self._gates(tf.concat([inputs, h], 1)), 4, axis=1)
        if self._layer_norm:
            i, j = self._norm(i, "input"), self._norm(j, "transform")
            f, o = self._norm(f, "forget"), self._norm(o, "output")
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = tf.nn.dropout(new, self._keep_prob, seed=self._seed)
        c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * new
        if self._layer_norm:
            c = self._norm(c, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, LSTMStateTuple(c, h)

    def _gates(self, inputs: tf.Tensor) -> tf.Tensor:
        width = 4 * self._num_units
        kernel = tf.get_variable("kernel", [inputs.shape[-1], width], dtype=inputs.dtype)
        gates = tf.matmul(inputs, kernel)
        if self._layer_norm:
            return gates
        return tf.nn.bias_add(gates, tf.get_variable("bias", [width], dtype=inputs.dtype))

    def _norm(self, tensor: tf.Tensor, scope: str) -> tf.Tensor:
        return normalized(tensor, scope, self._norm_gain, self._norm_shift, tensor.dtype)


__all__ = [
    *_SAME,
    "LayerNormBasicLSTMCell",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
]
