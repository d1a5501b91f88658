"""`tf.contrib.rnn`: cells and networks; most are those of `tf.nn.rnn_cell` and `tf.nn`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.api._v1.keras.__internal__.legacy.rnn_cell import (
    BasicLSTMCell,
    BasicRNNCell,
    DeviceWrapper,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    ResidualWrapper,
    RNNCell,
)
from tf_keras.src.layers.rnn.legacy_cells import LayerRNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import LSTMState, normalized
from tpu_estimator_compat.old_names.contrib.rnn.cell_wrappers import (
    AttentionCellWrapper,
    EmbeddingWrapper,
    HighwayWrapper,
    InputProjectionWrapper,
    OutputProjectionWrapper,
)
from tpu_estimator_compat.old_names.contrib.rnn.conv_cells import (
    Conv1DLSTMCell,
    Conv2DLSTMCell,
    Conv3DLSTMCell,
    ConvLSTMCell,
)
from tpu_estimator_compat.old_names.contrib.rnn.fused_rnn import (
    GRUBlockCell,
    GRUBlockCellV2,
    LSTMBlockCell,
)
from tpu_estimator_compat.old_names.contrib.rnn.gated_cells import (
    SRUCell,
    UGRNNCell,
)
from tpu_estimator_compat.old_names.contrib.rnn.independent_cells import (
    IndRNNCell,
    IndyLSTMCell,
)
from tpu_estimator_compat.old_names.contrib.rnn.lstm_cells import (
    CoupledInputForgetGateLSTMCell,
)
from tpu_estimator_compat.old_names.contrib.rnn.lstm_variants import GLSTMCell, PhasedLSTMCell
from tpu_estimator_compat.old_names.contrib.rnn.nas_cell import NASCell

static_bidirectional_rnn = tf.nn.static_bidirectional_rnn
static_rnn = tf.nn.static_rnn
static_state_saving_rnn = tf.nn.static_state_saving_rnn


def best_effort_input_batch_size(flat_input: list[tf.Tensor]) -> Any:
    """The batch's size, from inputs [time, batch, ...]: an integer if static, else a tensor."""
    for tensor in flat_input:
        if tensor.shape.rank is None:
            continue
        if tensor.shape.rank < 2:
            raise ValueError(f"Expected input tensor {tensor} to have rank at least 2")
        size = tensor.shape.as_list()[1]
        if size is not None:
            return size
    return tf.shape(flat_input[0])[1]


def transpose_batch_time(x: tf.Tensor) -> tf.Tensor:
    """[batch, time, ...] to [time, batch, ...], and back."""
    x = tf.convert_to_tensor(x)
    rank = x.shape.rank
    if rank is not None and rank < 2:
        return x
    rest = tf.range(2, tf.rank(x)) if rank is None else list(range(2, rank))
    return tf.transpose(x, tf.concat([[1, 0], rest], 0) if rank is None else [1, 0, *rest])


def _check_stack(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
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
    """Bidirectional layers, unrolled over `inputs`, a tensor [batch, depth] per time.

    Each layer reads both directions of the one before. Returns the last layer's outputs, a tensor
    [batch, both depths] per time, and the final states of all layers, forward and backward.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw, outputs = [], [], inputs
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with tf.variable_scope(f"cell_{i}") as cell_scope:
                outputs, state_fw, state_bw = static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    outputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    dtype=dtype,
                    scope=cell_scope,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return outputs, tuple(states_fw), tuple(states_bw)


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
    """`stack_bidirectional_rnn` on one tensor [batch, time, depth], in a loop of the graph.

    Outputs are like `inputs`, with both depths; time comes first in both if `time_major`.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    unset = [None] * len(cells_fw)
    layers = zip(
        cells_fw, cells_bw, initial_states_fw or unset, initial_states_bw or unset, strict=True
    )
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

    Its dropout is that of https://arxiv.org/abs/1603.05118, on the new values of the state. Without
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
    "AttentionCellWrapper",
    "BasicLSTMCell",
    "BasicRNNCell",
    "Conv1DLSTMCell",
    "Conv2DLSTMCell",
    "Conv3DLSTMCell",
    "ConvLSTMCell",
    "CoupledInputForgetGateLSTMCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "GLSTMCell",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "GRUCell",
    "HighwayWrapper",
    "IndRNNCell",
    "IndyLSTMCell",
    "InputProjectionWrapper",
    "LSTMBlockCell",
    "LSTMCell",
    "LSTMStateTuple",
    "LayerNormBasicLSTMCell",
    "LayerRNNCell",
    "MultiRNNCell",
    "NASCell",
    "OutputProjectionWrapper",
    "PhasedLSTMCell",
    "RNNCell",
    "ResidualWrapper",
    "SRUCell",
    "UGRNNCell",
    "best_effort_input_batch_size",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "static_bidirectional_rnn",
    "static_rnn",
    "static_state_saving_rnn",
    "transpose_batch_time",
]
