"""Cells of `tf.contrib.rnn` that had their own kernels; graph operations compute the same."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cells import GRUCell, LSTMCell, LSTMStateTuple, RNNCell
from tf_keras.src.legacy_tf_layers.base import Layer

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import LSTMState


class LSTMBlockCell(LSTMCell):
    """`tf.nn.rnn_cell.LSTMCell` with other arguments, and the same variable names.

    `cell_clip` limits the absolute value of the cell's state, unless None, 0 or negative.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ):
        super().__init__(
            num_units,
            use_peepholes=use_peephole,
            cell_clip=_limit(cell_clip),
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class GRUBlockCellV2(GRUCell):
    """`tf.nn.rnn_cell.GRUCell` with other arguments; `cell_size` is the old `num_units`."""

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ):
        if (num_units is None) == (cell_size is None):
            raise ValueError(
                f"Exactly one of num_units or cell_size must be provided, got {num_units} and "
                f"{cell_size}."
            )
        super().__init__(num_units or cell_size, reuse=reuse, name=name)


class GRUBlockCell(GRUBlockCellV2):
    """`GRUBlockCellV2` with older variable names: `w_ru`, `b_ru`, `w_c` and `b_c`."""

    def build(self, input_shape: Any) -> None:
        depth, units = tf.TensorShape(input_shape).as_list()[-1], self.state_size
        if depth is None:
            raise ValueError("Expecting input_size to be set.")
        ones, zeros = tf.ones_initializer(), tf.zeros_initializer()
        self._gate_kernel = self.add_weight("w_ru", [depth + units, 2 * units])
        self._gate_bias = self.add_weight("b_ru", [2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight("w_c", [depth + units, units])
        self._candidate_bias = self.add_weight("b_c", [units], initializer=zeros)
        self.built = True


class LSTMBlockFusedCell(Layer):
    """An LSTM that runs a whole sequence; the arguments are those of `LSTMBlockCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = _limit(cell_clip)
        self._use_peephole = use_peephole

    def build(self, input_shape: Any) -> None:
        of_list = isinstance(input_shape, list)
        depth = tf.TensorShape(input_shape[0] if of_list else input_shape).as_list()[-1]
        if depth is None:
            raise ValueError(f"Expecting inputs_shape[2] to be set: {input_shape}")
        units = self.num_units
        self._kernel = self.add_weight("kernel", [depth + units, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=tf.zeros_initializer())
        names = ("w_i_diag", "w_f_diag", "w_o_diag") if self._use_peephole else ()
        self._diagonals = [self.add_weight(name, [units]) for name in names]
        self.built = True

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> tuple[Any, LSTMStateTuple]:
        """Outputs, in the form of `inputs`, and the last state.

        Args:
          inputs: [time, batch, depth], or a list of `time` tensors [batch, depth].
          initial_state: the cell's state and output, each [batch, units]; None for zeros of
            `dtype`.
          sequence_length: integers [batch]; from there on, outputs are zero and the state stays.
        """
        if initial_state is None and dtype is None:
            raise ValueError("Either initial_state or dtype needs to be specified")
        state = None if initial_state is None else LSTMStateTuple(*initial_state)
        runs = FusedRNNCellAdaptor(_Step(self.num_units, self._step), use_dynamic_rnn=True)
        return runs(inputs, state, dtype, sequence_length)

    def _step(self, inputs: tf.Tensor, state: LSTMStateTuple) -> LSTMStateTuple:
        """One step of https://arxiv.org/abs/1409.2329."""
        cell, output = state
        gates = tf.nn.bias_add(tf.matmul(tf.concat([inputs, output], 1), self._kernel), self._bias)
        write, new, keep, show = tf.split(gates, 4, axis=1)
        keep += self._forget_bias
        if self._use_peephole:
            write += cell * self._diagonals[0]
            keep += cell * self._diagonals[1]
        cell = tf.sigmoid(keep) * cell + tf.sigmoid(write) * tf.tanh(new)
        if self._cell_clip is not None:
            cell = tf.clip_by_value(cell, -self._cell_clip, self._cell_clip)
        if self._use_peephole:
            show += cell * self._diagonals[2]
        return LSTMStateTuple(cell, tf.sigmoid(show) * tf.tanh(cell))


class _Step(LSTMState, RNNCell):
    def __init__(self, units: int, function: Any):
        super().__init__()
        self._num_units, self._function = units, function

    def call(self, inputs: tf.Tensor, state: LSTMStateTuple) -> tuple[tf.Tensor, LSTMStateTuple]:
        state = self._function(inputs, state)
        return state.h, state


class FusedRNNCell:
    """A cell that runs a whole sequence; arguments are those of `LSTMBlockFusedCell.call`."""

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        return self._run(
            inputs,
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )

    def _run(self, inputs: Any, **given: Any) -> tuple[Any, Any]:
        raise NotImplementedError


class FusedRNNCellAdaptor(FusedRNNCell):
    """Runs an RNN cell over a whole sequence, in a `tf.while_loop` or unrolled."""

    def __init__(self, cell: RNNCell, use_dynamic_rnn: bool = False):
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def _run(self, inputs: Any, **given: Any) -> tuple[Any, Any]:
        listed = isinstance(inputs, list)
        if self._use_dynamic_rnn:
            whole = tf.stack(inputs) if listed else inputs
            outputs, state = tf.nn.dynamic_rnn(self._cell, whole, time_major=True, **given)
            return (tf.unstack(outputs) if listed else outputs), state
        parts = inputs if listed else tf.unstack(inputs)
        outputs, state = tf.nn.static_rnn(self._cell, parts, **given)
        return (outputs if listed else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a `FusedRNNCell` or an `LSTMBlockFusedCell` backward over a sequence."""

    def __init__(self, cell: Any):
        self._cell = cell

    def _run(self, inputs: Any, **given: Any) -> tuple[Any, Any]:
        lengths = given["sequence_length"]
        outputs, state = self._cell(reversed_in_time(inputs, lengths), **given)
        return reversed_in_time(outputs, lengths), state


def reversed_in_time(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return sequence[::-1]
    if lengths is None:
        return tf.reverse(sequence, [0])
    return tf.reverse_sequence(sequence, lengths, seq_axis=0, batch_axis=1)


def _limit(cell_clip: float | None) -> float | None:
    return cell_clip if cell_clip is not None and cell_clip > 0 else None


__all__ = [
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "TimeReversedFusedRNN",
]
