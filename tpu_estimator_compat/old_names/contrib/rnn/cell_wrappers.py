"""Wrappers of `tf.contrib.rnn`: cells that add layers to another cell."""

from __future__ import annotations

import math
import operator
from typing import Any

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn.legacy_cell_wrappers import assert_like_rnncell
from tf_keras.src.layers.rnn.legacy_cells import RNNCell

from tpu_estimator_compat.old_names.contrib.rnn.cell_layers import linear


class _Wrapper(RNNCell):
    def __init__(self, cell: Any, reuse: bool | None = None):
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        self._cell = cell

    state_size = property(operator.attrgetter("_cell.state_size"))
    output_size = property(operator.attrgetter("_cell.output_size"))

    def zero_state(self, batch_size: Any, dtype: tf.DType) -> Any:
        with tf.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_Wrapper):
    """A linear layer of depth `num_proj` before a cell. `input_size` is ignored."""

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ):
        super().__init__(cell, reuse)
        del input_size
        self._num_proj = num_proj
        self._activation = activation

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[Any, Any]:
        projected = linear([inputs], self._num_proj)
        if self._activation:
            projected = self._activation(projected)
        return self._cell(projected, state)


class OutputProjectionWrapper(_Wrapper):
    """A linear layer of depth `output_size` after a cell."""

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: bool | None = None
    ):
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._depth = output_size
        self._activation = activation

    output_size = property(operator.attrgetter("_depth"))

    def call(self, inputs: Any, state: Any) -> tuple[tf.Tensor, Any]:
        output, state = self._cell(inputs, state)
        projected = linear([output], self._depth)
        return (self._activation(projected) if self._activation else projected), state


class EmbeddingWrapper(_Wrapper):
    """A cell that looks its inputs, ids [batch] or [batch, 1], up in an embedding table.

    Without `initializer`, the table uses the scope's, or else uniform values of variance 1.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ):
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._table_shape = (embedding_classes, embedding_size)
        self._initializer = initializer

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[Any, Any]:
        bound = math.sqrt(3)  # uniform in [-bound, bound] has variance 1
        initializer = (
            self._initializer
            or tf.get_variable_scope().initializer
            or tf.random_uniform_initializer(-bound, bound)
        )
        with tf.device("/cpu:0"):
            dtype = tf.nest.flatten(state)[0].dtype
            table = tf.get_variable("embedding", self._table_shape, dtype, initializer=initializer)
            rows = tf.nn.embedding_lookup(table, tf.reshape(inputs, [-1]))
            return self._cell(rows, state)


class HighwayWrapper(_Wrapper):
    """A cell with a highway connection from input to output (https://arxiv.org/abs/1505.00387).

    Its variables are in the enclosing scope. `carry_bias_init` is the initial bias of the carry
    gate. The transform gate exists if the gates are not coupled; its initial bias is the negative.
    """

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ):
        super().__init__(cell)
        self._coupled = couple_carry_transform_gates
        self._carry_bias = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """One step on tensors [batch, depth]; outputs must have the inputs' structure and shape."""
        outputs, state = self._cell(inputs, state, scope=scope)
        tf.nest.assert_same_structure(inputs, outputs)
        pairs = list(zip(tf.nest.flatten(inputs), tf.nest.flatten(outputs), strict=True))
        for given, made in pairs:
            given.shape.assert_is_compatible_with(made.shape)
        mixed = [self._mixed(given, made) for given, made in pairs]
        return tf.nest.pack_sequence_as(outputs, mixed), state

    def _mixed(self, given: tf.Tensor, made: tf.Tensor) -> tf.Tensor:
        carry = _gate(given, "carry", self._carry_bias)
        transform = 1 - carry if self._coupled else _gate(given, "transform", -self._carry_bias)
        return given * carry + made * transform


def _gate(inputs: tf.Tensor, name: str, bias: float) -> tf.Tensor:
    depth = inputs.shape.with_rank(2).as_list()[1]
    kernel = tf.get_variable(f"{name}_w", [depth, depth])
    initializer = tf.constant_initializer(bias)
    shift = tf.get_variable(f"{name}_b", [depth], initializer=initializer)
    return tf.sigmoid(tf.matmul(inputs, kernel) + shift)


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its last `attn_length` outputs (https://arxiv.org/abs/1409.0473).

    `attn_size` is the depth of outputs, by default the cell's; `attn_vec_size` that of the scoring
    layer, by default `attn_size`; `input_size` that of the cell's input after mixing with the
    attention, by default the input's. The state tuple is (cell state, attention, last outputs).
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        assert_like_rnncell("cell", cell)
        if tf.nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                f"State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._length = attn_length
        self._depth = cell.output_size if attn_size is None else attn_size
        self._score_depth = self._depth if attn_vec_size is None else attn_vec_size
        self._mixed_depth = input_size
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._depth, self._depth * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    output_size = property(operator.attrgetter("_depth"))

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        if not self._state_is_tuple:
            sizes = [self._cell.state_size, self._depth, self._depth * self._length]
            state = tf.split(state, sizes, axis=1)
        of_cell, attended, last = state
        last = tf.reshape(last, [-1, self._length, self._depth])
        mixed = linear([inputs, attended], self._mixed_depth or inputs.shape.as_list()[1])
        output, of_cell = self._cell(mixed, of_cell)
        attended = self._attended(tf.concat(tf.nest.flatten(of_cell), 1), last)
        with tf.variable_scope("attn_output_projection"):
            output = linear([output, attended], self._depth)
        last = tf.concat([last[:, 1:], output[:, tf.newaxis]], 1)
        new = (of_cell, attended, tf.reshape(last, [-1, self._length * self._depth]))
        return output, new if self._state_is_tuple else tf.concat(new, 1)

    def _attended(self, query: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        with tf.variable_scope("attention"):
            # The original computes the score with a convolution, so the kernel has its shape.
            kernel = tf.get_variable("attn_w", [1, 1, self._depth, self._score_depth])
            weights = tf.get_variable("attn_v", [self._score_depth])
            asked = linear([query], self._score_depth)[:, tf.newaxis]
            seen = tf.tensordot(last, kernel[0, 0], 1)
            scores = tf.reduce_sum(weights * tf.tanh(seen + asked), 2)
            return tf.reduce_sum(tf.nn.softmax(scores)[:, :, tf.newaxis] * last, 1)


__all__ = [
    "AttentionCellWrapper",
    "EmbeddingWrapper",
    "HighwayWrapper",
    "InputProjectionWrapper",
    "OutputProjectionWrapper",
]
