"""`tf.contrib.cudnn_rnn`: multi-layer and bidirectional recurrent layers, and compatible cells.

The original runs on cuDNN, on GPUs only. Here, graph operations compute the same on any device. A
layer has one variable, `opaque_kernel`, in cuDNN's order: all kernels, then all biases. Checkpoints
hold this variable, and also kernels and biases under the names of compatible cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.training import saver
from tf_keras.src.legacy_tf_layers.base import Layer

from tpu_estimator_compat.old_names.contrib.cudnn_cells import (
    CudnnCompatibleGRUCell,
    CudnnCompatibleLSTMCell,
    GateCell,
    halves,
    joined,
    taken_apart,
)
from tpu_estimator_compat.old_names.contrib.rnn.fused_rnn import reversed_in_time

_UNIDIRECTIONAL, _BIDIRECTIONAL = "unidirectional", "bidirectional"
_INPUT_MODES = ("linear_input", "skip_input", "auto_select")
_DTYPES = (tf.float16, tf.float32, tf.float64)


class _CudnnRNN(Layer):
    """A stack of recurrent layers, in one direction or two.

    `input_mode` must be "linear_input", or "auto_select" if the input's depth differs from
    `num_units`: only cuDNN can skip the first layer's input kernels. `dropout` is the rate at which
    training drops inputs of all layers but the first. Kernels start with glorot_uniform per gate.
    """

    _mode = ""
    _gates = 1
    _states = 1
    _order: tuple[int, ...] = (0,)  # order of the gates in a compatible cell's variables
    _cell_name = "basic_rnn_cell"

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = _UNIDIRECTIONAL,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = tf.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ):
        super().__init__(dtype=dtype, name=name)
        if direction not in (_UNIDIRECTIONAL, _BIDIRECTIONAL):
            raise ValueError(
                f"Invalid direction: {direction}, expecting {_UNIDIRECTIONAL} or {_BIDIRECTIONAL}"
            )
        if input_mode not in _INPUT_MODES:
            raise ValueError(f"Invalid input_mode: {input_mode}, expect one of {_INPUT_MODES}")
        if tf.as_dtype(dtype) not in _DTYPES:
            raise ValueError(f"Only support float16, float32, float64, provided {dtype}")
        self.num_layers, self.num_units = num_layers, num_units
        self.input_mode, self.direction = input_mode, direction
        self._dropout, self._seed = dropout, seed
        self._kernel_initializer = kernel_initializer or tf.glorot_uniform_initializer(seed=seed)
        self._bias_initializer = bias_initializer or tf.zeros_initializer()
        self.saveable: Any = None

    @property
    def rnn_mode(self) -> str:
        """`lstm`, `gru`, `rnn_relu` or `rnn_tanh`."""
        return self._mode

    @property
    def num_dirs(self) -> int:
        return 1 if self.direction == _UNIDIRECTIONAL else 2

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of the kernels, ordered by layer, direction, input before state, gate."""
        units, shapes = self.num_units, []
        for layer in range(self.num_layers):
            depth = self.num_dirs * units if layer else self.input_size
            shapes += (
                [(units, depth)] * self._gates + [(units, units)] * self._gates
            ) * self.num_dirs
        return shapes

    @property
    def canonical_bias_shapes(self) -> list[tuple[int]]:
        return [(self.num_units,)] * len(self.canonical_weight_shapes)

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """Shapes of the states; an LSTM has two, output and memory."""
        shape = [self.num_layers * self.num_dirs, batch_size, self.num_units]
        return (shape,) * self._states

    def build(self, input_shape: Any) -> None:
        shape = tf.TensorShape(input_shape)
        if shape.rank != 3:
            raise ValueError(f"Expecting input_shape with 3 dims, got {shape.rank}")
        self.input_size = shape.as_list()[-1]
        if self.input_size is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        same = self.input_size == self.num_units
        if self.input_mode == "skip_input" or (self.input_mode == "auto_select" and same):
            raise NotImplementedError(
                f"input_mode={self.input_mode!r} with inputs of depth {self.input_size}: only "
                "cuDNN has a first layer without kernels of its input. Set "
                'input_mode="linear_input".'
            )
        shapes = [*self.canonical_weight_shapes, *self.canonical_bias_shapes]
        size = sum(map(np.prod, shapes))
        self.kernel = self.add_weight("opaque_kernel", [int(size)], initializer=self._first_values)
        if not tf.executing_eagerly() and not tf.get_variable_scope().reuse:
            self.saveable = _Saveable(self)
            tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, self.saveable)
        self.built = True

    def _first_values(self, shape: Any, dtype: Any = None, **unused: Any) -> Any:
        del shape, unused
        kernels = [self._kernel_initializer(s, dtype) for s in self.canonical_weight_shapes]
        biases = [self._bias_initializer(s, dtype) for s in self.canonical_bias_shapes]
        return tf.concat([tf.reshape(t, [-1]) for t in (*kernels, *biases)], 0)

    def parts(self) -> list[tuple[list[Any], list[Any]]]:
        """Kernels and biases by gate, for each direction of each layer."""
        shapes = [*self.canonical_weight_shapes, *self.canonical_bias_shapes]
        flat = tf.split(self.kernel, [int(np.prod(shape)) for shape in shapes])
        tensors = [tf.reshape(t, shape) for t, shape in zip(flat, shapes, strict=True)]
        kernels, biases = tensors[: len(shapes) // 2], tensors[len(shapes) // 2 :]
        of_one = range(0, len(kernels), 2 * self._gates)
        return [(kernels[i : i + 2 * self._gates], biases[i : i + 2 * self._gates]) for i in of_one]

    def to_cell(self, kernels: Sequence[Any], biases: Sequence[Any]) -> dict[str, Any]:
        """A compatible cell's variables by name, from the kernels and biases of one direction."""
        return {
            "kernel": joined(kernels, self._order, self._gates),
            "bias": tf.concat([biases[g] + biases[g + self._gates] for g in self._order], 0),
        }

    def from_cell(self, variables: Sequence[Any], depth: int) -> tuple[list[Any], list[Any]]:
        """Kernels and biases by gate, from the variables of a compatible cell; see `to_cell`."""
        kernel, bias = variables
        return taken_apart(kernel, self._order, depth), halves(bias, self._order)

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[Any, tuple[Any, ...]]:
        """Outputs, and the states after the last step of each sequence.

        Args:
          inputs: [time, batch, depth]; [batch, time, depth] unless `time_major`.
          initial_state: a tuple of one tensor, or two for an LSTM, [layers * directions, batch,
            units]; [batch, layers * directions, units] unless `time_major`. None for zeros.
          sequence_lengths: int32 [batch]; None for full length.
          training: whether to apply dropout.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        outputs = tf.convert_to_tensor(inputs, dtype=self.dtype)
        if not time_major:
            outputs = tf.transpose(outputs, [1, 0, 2])
        given = self._states_of(initial_state, tf.shape(outputs)[1], time_major)
        cells = [GateCell(self._mode, *part) for part in self.parts()]
        states = []
        for first in range(0, len(cells), self.num_dirs):
            if first and self._dropout and training:
                outputs = tf.nn.dropout(outputs, rate=self._dropout, seed=self._seed)
            of_layer = []
            for i in range(first, first + self.num_dirs):
                backward = i > first
                found, state = _run(cells[i], outputs, given[i], sequence_lengths, backward)
                of_layer.append(found)
                states.append(state)
            outputs = tf.concat(of_layer, 2)
        axis = 0 if time_major else 1
        last = tuple(tf.stack(parts, axis) for parts in zip(*states, strict=True))
        return (outputs if time_major else tf.transpose(outputs, [1, 0, 2])), last

    def _states_of(self, given: Any, batch: Any, time_major: bool) -> list[tuple[Any, ...]]:
        if given is None:
            given = tuple(tf.zeros(shape, self.dtype) for shape in self.state_shape(batch))
            time_major = True
        count = self.num_layers * self.num_dirs
        split = [tf.unstack(s, count, axis=0 if time_major else 1) for s in given]
        return list(zip(*split, strict=True))


def _run(cell: GateCell, inputs: Any, state: Any, lengths: Any, backward: bool) -> tuple[Any, Any]:
    """Outputs and last state of one direction of one layer, for inputs [time, batch, depth]."""
    given = reversed_in_time(inputs, lengths) if backward else inputs
    outputs, last = tf.nn.dynamic_rnn(cell, given, lengths, initial_state=state, time_major=True)
    return (reversed_in_time(outputs, lengths) if backward else outputs), last


class _Saveable(saver.BaseSaverBuilder.SaveableObject):
    def __init__(self, layer: _CudnnRNN):
        self._layer = layer
        scope = tf.get_variable_scope().name
        specs = []
        for index, (kernels, biases) in enumerate(layer.parts()):
            prefix = "/".join(filter(None, [scope, _cell_scope(layer, index)]))
            for name, tensor in layer.to_cell(kernels, biases).items():
                specs.append(saver.BaseSaverBuilder.SaveSpec(tensor, "", f"{prefix}/{name}"))
        super().__init__(layer.kernel, specs, f"{layer.kernel.op.name}_saveable")

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_shapes
        layer, left = self._layer, list(restored_tensors)
        kernels, biases = [], []
        for before, of_biases in layer.parts():
            count = len(layer.to_cell(before, of_biases))
            of_kernels, of_biases = layer.from_cell(left[:count], before[0].shape[1])
            kernels += of_kernels
            biases += of_biases
            left = left[count:]
        flat = [tf.reshape(t, [-1]) for t in (*kernels, *biases)]
        return tf.assign(layer.kernel, tf.concat(flat, 0))


def _cell_scope(layer: _CudnnRNN, index: int) -> str:
    number, backward = divmod(index, layer.num_dirs)
    if layer.num_dirs == 1:
        return f"rnn/multi_rnn_cell/cell_{number}/{layer._cell_name}"
    side = "bw" if backward else "fw"
    return f"stack_bidirectional_rnn/cell_{number}/bidirectional_rnn/{side}/{layer._cell_name}"


class CudnnLSTM(_CudnnRNN):
    __doc__ = (_CudnnRNN.__doc__ or "").replace("recurrent layers", "LSTM layers")
    _mode = "lstm"
    _gates = 4
    _states = 2
    _order = (0, 2, 1, 3)
    _cell_name = "cudnn_compatible_lstm_cell"


class CudnnGRU(_CudnnRNN):
    __doc__ = (_CudnnRNN.__doc__ or "").replace("recurrent layers", "GRU layers")
    _mode = "gru"
    _gates = 3
    _cell_name = "cudnn_compatible_gru_cell"

    def to_cell(self, kernels: Sequence[Any], biases: Sequence[Any]) -> dict[str, Any]:
        """The variables: reset and update are joint gates, the third kernel is the candidate's."""
        return {
            "gates/kernel": joined(kernels, (0, 1), 3),
            "candidate/input_projection/kernel": tf.transpose(kernels[2]),
            "candidate/hidden_projection/kernel": tf.transpose(kernels[5]),
            "gates/bias": tf.concat([biases[g] + biases[g + 3] for g in (0, 1)], 0),
            "candidate/input_projection/bias": biases[2],
            "candidate/hidden_projection/bias": biases[5],
        }

    def from_cell(self, variables: Sequence[Any], depth: int) -> tuple[list[Any], list[Any]]:
        gates, of_input, of_state, gate_bias, input_bias, state_bias = variables
        kernels = taken_apart(gates, (0, 1), depth)
        of_input, of_state = tf.transpose(of_input), tf.transpose(of_state)
        biases = halves(gate_bias, (0, 1))
        return (
            [*kernels[:2], of_input, *kernels[2:], of_state],
            [*biases[:2], input_bias, *biases[2:], state_bias],
        )


class CudnnRNNTanh(_CudnnRNN):
    __doc__ = (_CudnnRNN.__doc__ or "").replace("recurrent layers", "layers of tanh")
    _mode = "rnn_tanh"


class CudnnRNNRelu(_CudnnRNN):
    __doc__ = (_CudnnRNN.__doc__ or "").replace("recurrent layers", "layers of relu")
    _mode = "rnn_relu"


__all__ = [
    "CudnnCompatibleGRUCell",
    "CudnnCompatibleLSTMCell",
    "CudnnGRU",
    "CudnnLSTM",
    "CudnnRNNRelu",
    "CudnnRNNTanh",
]
