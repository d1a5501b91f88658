"""An RNN cell that adds attention to another cell, and its state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.rnn_cell_impl import _zero_state_tensors, assert_like_rnncell
from tf_keras.api._v1.keras.__internal__.legacy.layers import Dense

from tpu_estimator_compat.old_names.contrib.rnn import RNNCell
from tpu_estimator_compat.old_names.contrib.seq2seq.attention import AttentionMechanism


class _Fields(NamedTuple):
    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any


class AttentionWrapperState(_Fields):
    """The state of an `AttentionWrapper`.

    `alignments` are the weights of the memory's times, `alignment_history` those of all steps if
    kept, `attention_state` the states of the mechanisms.
    """

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with replaced fields, which must have compatible shapes."""
        return tf.nest.map_structure(_of_same_shape, self, self._replace(**kwargs))


def _of_same_shape(old: Any, new: Any) -> Any:
    if not (tf.is_tensor(old) and tf.is_tensor(new)):
        return new
    if not old.shape.is_compatible_with(new.shape):
        raise ValueError(
            "The shape of the AttentionWrapperState is expected to be same as the one to clone. "
            f"self.shape: {old.shape}, input.shape: {new.shape}"
        )
    if old.shape.is_fully_defined() and not new.shape.is_fully_defined():
        new = tf.ensure_shape(new, old.shape)
    return new


class AttentionWrapper(RNNCell):
    """Feeds the last attention to a cell, and attends with the cell's output as query.

    Variables of attention, score and query layers are in this cell's scope, `attention_wrapper`.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: tf.DType | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        assert_like_rnncell("cell", cell)
        self._cell = cell
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _all_of(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw type: {type(cell_input_fn)}")
        self._cell_input_fn = cell_input_fn or (lambda x, attention: tf.concat([x, attention], -1))
        self._set_layers(attention_layer_size, attention_layer)
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        with tf.name_scope(name, "AttentionWrapperInit"):
            self._initial_cell_state = None
            if initial_cell_state is not None:
                self._initial_cell_state = self._checked(initial_cell_state)

    def _set_layers(self, sizes: Any, layers: Any) -> None:
        mechanisms = self._attention_mechanisms
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        if sizes is not None:
            sizes = _all_of(sizes)
            _check_count("attention_layer_size", sizes, mechanisms)
            layers = tuple(
                Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
                for size, mechanism in zip(sizes, mechanisms, strict=True)
            )
        elif layers is not None:
            layers = _all_of(layers)
            _check_count("attention_layer", layers, mechanisms)
            sizes = tuple(
                _last(layer.compute_output_shape([None, self._cell.output_size + _last(m.values)]))
                for layer, m in zip(layers, mechanisms, strict=True)
            )
        else:
            sizes = tuple(_last(mechanism.values) for mechanism in mechanisms)
        self._attention_layers = layers
        self._attention_layer_size = sum(sizes)

    def _checked(self, cell_state: Any) -> Any:
        batch_size = tf.shape(tf.nest.flatten(cell_state)[-1])[0]
        message = (
            f"When constructing AttentionWrapper {self.name}: Non-matching batch sizes between "
            "the memory (encoder output) and initial_cell_state. Are you using the "
            "BeamSearchDecoder? You may need to tile your initial state via the "
            "tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width."
        )
        return self._of_batch(batch_size, message, cell_state, "check_initial_cell_state")

    def _of_batch(self, batch_size: Any, message: str, values: Any, name: str) -> Any:
        """Checks that the mechanisms have this batch size, before `values`."""
        checks = [
            tf.assert_equal(batch_size, mechanism.batch_size, message=message)
            for mechanism in self._attention_mechanisms
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return tf.nest.map_structure(lambda value: tf.identity(value, name=name), values)

    def _item_or_tuple(self, values: Any) -> Any:
        """A tuple if the constructor got a list of mechanisms, else the single value."""
        values = tuple(values)
        return values if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        sizes = [mechanism.alignments_size for mechanism in self._attention_mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=tf.TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(sizes),
            attention_state=self._item_or_tuple(m.state_size for m in self._attention_mechanisms),
            alignment_history=self._item_or_tuple(
                size if self._alignment_history else () for size in sizes
            ),
        )

    def zero_state(self, batch_size: Any, dtype: tf.DType) -> AttentionWrapperState:
        with tf.name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            message = (
                f"When calling zero_state of AttentionWrapper {self.name}: Non-matching batch "
                "sizes between the memory (encoder output) and the requested batch size. Are you "
                "using the BeamSearchDecoder? If so, make sure your encoder output has been tiled "
                "to beam_width via tf.contrib.seq2seq.tile_batch, and the batch_size= argument "
                "passed to zero_state is batch_size * beam_width."
            )
            cell_state = self._of_batch(batch_size, message, cell_state, "checked_cell_state")
            mechanisms = self._attention_mechanisms
            alignments = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=tf.zeros([], tf.int32),
                attention=_zero_state_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(
                    m.initial_state(batch_size, dtype) for m in mechanisms
                ),
                alignment_history=self._item_or_tuple(map(self._history, alignments)),
            )

    def _history(self, alignments: tf.Tensor) -> Any:
        if not self._alignment_history:
            return ()
        return tf.TensorArray(
            alignments.dtype, size=0, dynamic_size=True, element_shape=alignments.shape
        )

    def call(self, inputs: Any, state: AttentionWrapperState) -> tuple[Any, AttentionWrapperState]:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. Received type "
                f"{type(state)} instead."
            )
        cell_inputs = self._cell_input_fn(inputs, state.attention)
        cell_output, cell_state = self._cell(cell_inputs, state.cell_state)
        cell_output = self._checked_output(cell_output)
        attention, alignments, states = self._attend_to_all(cell_output, state.attention_state)
        history = [
            array.write(state.time, alignment) if self._alignment_history else ()
            for array, alignment in zip(
                self._list(state.alignment_history), alignments, strict=True
            )
        ]
        next_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            attention_state=self._item_or_tuple(states),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(history),
        )
        return attention if self._output_attention else cell_output, next_state

    def _checked_output(self, cell_output: tf.Tensor) -> tf.Tensor:
        batch_size = tf.compat.dimension_value(cell_output.shape[0])
        batch_size = tf.shape(cell_output)[0] if batch_size is None else batch_size
        message = (
            f"When applying AttentionWrapper {self.name}: Non-matching batch sizes between the "
            "memory (encoder output) and the query (decoder output). Are you using the "
            "BeamSearchDecoder? You may need to tile your memory input via the "
            "tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width."
        )
        return self._of_batch(batch_size, message, cell_output, "checked_cell_output")

    def _attend_to_all(self, cell_output: Any, states: Any) -> tuple[Any, list[Any], list[Any]]:
        layers = self._attention_layers or (None,) * len(self._attention_mechanisms)
        found = [
            self._attention_fn(mechanism, cell_output, state, layer)
            for mechanism, state, layer in zip(
                self._attention_mechanisms, self._list(states), layers, strict=True
            )
        ]
        attentions, alignments, next_states = zip(*found, strict=True)
        return tf.concat(attentions, 1), list(alignments), list(next_states)

    def _list(self, one_or_all: Any) -> list[Any]:
        return list(one_or_all) if self._is_multi else [one_or_all]


def _compute_attention(
    attention_mechanism: Any, cell_output: tf.Tensor, attention_state: Any, attention_layer: Any
) -> tuple[tf.Tensor, tf.Tensor, Any]:
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    context = tf.squeeze(tf.matmul(tf.expand_dims(alignments, 1), attention_mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(tf.concat([cell_output, context], 1)), alignments, next_state


def _all_of(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _last(shaped: Any) -> int:
    shape = shaped.shape if hasattr(shaped, "shape") else tf.TensorShape(shaped)
    return int(tf.compat.dimension_value(shape[-1]))


def _check_count(name: str, given: tuple[Any, ...], mechanisms: tuple[Any, ...]) -> None:
    if len(given) != len(mechanisms):
        raise ValueError(
            f"If provided, {name} must contain exactly one element per attention_mechanism, saw: "
            f"{len(given)} vs {len(mechanisms)}"
        )
