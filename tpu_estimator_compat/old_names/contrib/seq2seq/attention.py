"""Attention: the weights that a query gives to the times of a memory."""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops.rnn_cell_impl import _zero_state_tensors
from tf_keras.api._v1.keras.__internal__.legacy.layers import Dense

from tpu_estimator_compat.old_names.contrib.seq2seq.monotonic import monotonic_probability_fn

_Scores = Callable[[tf.Tensor, Any], tf.Tensor]


class AttentionMechanism:
    """A memory, and a function that weights its times; has `alignments_size` and `state_size`."""


class _BaseAttentionMechanism(AttentionMechanism):
    """A memory [batch, time, ...], masked by its lengths, with keys that a layer computes.

    Scripts subclass it, and call this module's functions that begin with an underscore.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: _Scores,
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn)}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = getattr(memory_layer, "dtype", None)
        masked = -np.inf if score_mask_value is None else score_mask_value
        self._probability_fn = lambda score, state: probability_fn(
            _maybe_mask_score(score, memory_sequence_length, score_mask_value=masked), state
        )
        with tf.name_scope(name, "BaseAttentionMechanismInit", tf.nest.flatten(memory)):
            self._values = _prepare_memory(
                memory, memory_sequence_length, check_inner_dims_defined=check_inner_dims_defined
            )
            self._keys = memory_layer(self._values) if memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = _dimension(self._keys, 0)
            self._alignments_size = _dimension(self._keys, 1)

    query_layer = property(operator.attrgetter("_query_layer"))
    memory_layer = property(operator.attrgetter("_memory_layer"))
    values = property(operator.attrgetter("_values"), doc="Zeros behind the ends of sequences.")
    keys = property(operator.attrgetter("_keys"))
    batch_size = property(operator.attrgetter("_batch_size"))
    alignments_size = state_size = property(operator.attrgetter("_alignments_size"))

    def initial_alignments(self, batch_size: Any, dtype: tf.DType) -> tf.Tensor:
        return _zero_state_tensors(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: tf.DType) -> tf.Tensor:
        return self.initial_alignments(batch_size, dtype)


class _Scored(_BaseAttentionMechanism, abc.ABC):
    """Attention with the score that a subclass defines."""

    _SCOPE: str
    """Scope of the score's variables."""

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.variable_scope(None, self._SCOPE, [query]):
            alignments = self._probability_fn(self._score(query), state)
        return alignments, alignments

    def _with_state(self, function: Any) -> _Scores:
        """The function of the scores and the state, from a function of the scores."""
        return lambda score, _: (function or tf.nn.softmax)(score)

    @abc.abstractmethod
    def _score(self, query: tf.Tensor) -> tf.Tensor:
        """The score of a query at each time: [batch, time]."""


class LuongAttention(_Scored):
    """Multiplicative attention (https://arxiv.org/abs/1508.04025), optionally scaled by a variable.

    A call with a query [batch, units] and the state returns weights [batch, time] and the next
    state, which is the same tensor.
    """

    _SCOPE = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: tf.DType | None = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        self._num_units, self._scale, self._name = num_units, scale, name
        keys, scores = _layer("memory_layer", num_units, dtype), self._with_state(probability_fn)
        given = (memory, scores, memory_sequence_length, keys, True, score_mask_value)
        super().__init__(None, *given, custom_key_value_fn, name)

    def _score(self, query: tf.Tensor) -> tf.Tensor:
        scale = None
        if self._scale:
            scale = tf.get_variable(
                "attention_g", dtype=query.dtype, initializer=tf.ones_initializer(), shape=()
            )
        return _luong_score(query, self._keys, scale)


class BahdanauAttention(_Scored):
    """Additive attention (https://arxiv.org/abs/1409.0473), called as `LuongAttention`."""

    _SCOPE = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: tf.DType | None = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        self._num_units, self._normalize, self._name = num_units, normalize, name
        query, keys = (_layer(n, num_units, dtype) for n in ("query_layer", "memory_layer"))
        scores = self._with_state(probability_fn)
        given = (memory, scores, memory_sequence_length, keys, True, score_mask_value)
        super().__init__(query, *given, custom_key_value_fn, name)

    def _score(self, query: tf.Tensor) -> tf.Tensor:
        processed = self.query_layer(query)
        units, dtype = self._num_units, query.dtype
        vector = tf.get_variable("attention_v", [units], dtype=dtype)
        if not self._normalize:
            return _bahdanau_score(processed, self._keys, vector)
        initial = tf.constant_initializer(np.sqrt(1.0 / units))
        norm = tf.get_variable("attention_g", dtype=dtype, initializer=initial, shape=())
        bias = tf.get_variable("attention_b", [units], dtype, tf.zeros_initializer())
        return _bahdanau_score(processed, self._keys, vector, norm, bias)


class _BaseMonotonicAttentionMechanism(_BaseAttentionMechanism):
    """Monotonic attention: weights never move back in time (https://arxiv.org/abs/1704.00784)."""

    def initial_alignments(self, batch_size: Any, dtype: tf.DType) -> tf.Tensor:
        return tf.one_hot(tf.zeros((batch_size,), tf.int32), self._alignments_size, dtype=dtype)


class _Monotonic(_BaseMonotonicAttentionMechanism, _Scored):
    _bias: float

    def _with_state(self, function: Any) -> _Scores:
        return function

    def _score(self, query: tf.Tensor) -> tf.Tensor:
        score = super()._score(query)  # type: ignore[safe-super]  # the other base class's
        initializer = tf.constant_initializer(self._bias)
        return score + tf.get_variable(
            "attention_score_bias", dtype=query.dtype, shape=(), initializer=initializer
        )


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """Monotonic attention with Luong's score and a score bias."""

    _SCOPE = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: tf.DType | None = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        probabilities = _monotonic(sigmoid_noise, mode, sigmoid_noise_seed)
        given = (num_units, memory, memory_sequence_length, scale, probabilities)
        super().__init__(*given, score_mask_value, dtype, None, name)
        self._bias = score_bias_init


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """Monotonic attention with Bahdanau's score and a score bias."""

    _SCOPE = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: tf.DType | None = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        probabilities = _monotonic(sigmoid_noise, mode, sigmoid_noise_seed)
        given = (num_units, memory, memory_sequence_length, normalize, probabilities)
        super().__init__(*given, score_mask_value, dtype, None, name)
        self._bias = score_bias_init


def hardmax(logits: tf.Tensor, name: str | None = None) -> tf.Tensor:
    """One-hot of the largest logit in each row."""
    with tf.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        return tf.one_hot(tf.argmax(logits, -1), _dimension(logits, -1), dtype=logits.dtype)


def _layer(name: str, units: int, dtype: tf.DType | None) -> Any:
    return Dense(units, name=name, use_bias=False, dtype=tf.float32 if dtype is None else dtype)


def _monotonic(sigmoid_noise: float, mode: str, seed: int | None) -> Any:
    return functools.partial(
        monotonic_probability_fn, sigmoid_noise=sigmoid_noise, mode=mode, seed=seed
    )


def _luong_score(query: tf.Tensor, keys: tf.Tensor, scale: Any) -> tf.Tensor:
    units = tf.compat.dimension_value(keys.shape[-1])
    depth = tf.compat.dimension_value(query.shape[-1])
    if depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys.  "
            f"Query ({query}) has units: {depth}.  Keys ({keys}) have units: {units}.  "
            f"Perhaps you need to set num_units to the keys' dimension ({units})?"
        )
    score = tf.squeeze(tf.matmul(tf.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def _bahdanau_score(
    processed_query: tf.Tensor,
    keys: tf.Tensor,
    attention_v: tf.Tensor,
    attention_g: Any = None,
    attention_b: Any = None,
) -> tf.Tensor:
    hidden = keys + tf.expand_dims(processed_query, 1)
    if attention_g is not None:
        norm = tf.rsqrt(tf.reduce_sum(tf.square(attention_v)))
        attention_v = attention_g * attention_v * norm
    if attention_b is not None:
        hidden += attention_b
    return tf.reduce_sum(attention_v * tf.tanh(hidden), [2])


def _prepare_memory(
    memory: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    memory = tf.nest.map_structure(lambda m: tf.convert_to_tensor(m, name="memory"), memory)
    for m in tf.nest.flatten(memory):
        if check_inner_dims_defined and not m.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {m.name} to have fully defined inner dims, but saw shape: "
                f"{m.shape}"
            )

    def masked(m: tf.Tensor) -> tf.Tensor:
        mask = _mask(memory_sequence_length, memory_mask, tf.shape(m)[1])
        if mask is None:
            return m
        shape = tf.concat([tf.shape(mask), [1] * (m.shape.rank - 2)], 0)
        return m * tf.reshape(tf.cast(mask, m.dtype), shape)

    return tf.nest.map_structure(masked, memory)


def _maybe_mask_score(
    score: tf.Tensor,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    score_mask_value: Any = None,
) -> tf.Tensor:
    if memory_sequence_length is not None:
        message = "All values in memory_sequence_length must greater than zero."
        positive = tf.assert_positive(memory_sequence_length, message=message)
        with tf.control_dependencies([positive]):
            memory_sequence_length = tf.identity(memory_sequence_length)
    mask = _mask(memory_sequence_length, memory_mask, tf.shape(score)[1])
    if mask is None:
        return score
    return tf.where(mask, score, score_mask_value * tf.ones_like(score))


def _mask(lengths: Any, mask: Any, times: tf.Tensor) -> Any:
    """The mask [batch, time] given by one of the two; None without."""
    if lengths is None:
        return mask
    if mask is not None:
        raise ValueError("memory_sequence_length and memory_mask can't be provided at same time.")
    return tf.sequence_mask(lengths, times)


def _dimension(tensor: tf.Tensor, axis: int) -> Any:
    static = tf.compat.dimension_value(tensor.shape[axis])
    return tf.shape(tensor)[axis] if static is None else static
