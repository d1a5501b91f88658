"""Helpers of a `BasicDecoder`: sample from a step's outputs, and make the next inputs.

A training helper feeds given inputs; an inference helper embeds its samples.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.rnn import _transpose_batch_time


class Helper(abc.ABC):
    """Samples from outputs of a `BasicDecoder`, and computes the inputs of the next step."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences."""

    @property
    @abc.abstractmethod
    def sample_ids_shape(self) -> tf.TensorShape:
        """Shape of a sample, without the batch."""

    @property
    @abc.abstractmethod
    def sample_ids_dtype(self) -> tf.DType:
        """Type of samples."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are finished before the first step, and its inputs."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Samples of a step's outputs."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are finished, the next inputs, and the next state."""


class _SamplingHelper(Helper):
    _shape = tf.TensorShape([])
    _dtype = tf.int32
    _batch_size: Any = None
    _start_inputs: Any

    batch_size = property(operator.attrgetter("_batch_size"))
    sample_ids_shape = property(operator.attrgetter("_shape"))
    sample_ids_dtype = property(operator.attrgetter("_dtype"))

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf.tile([False], [self._batch_size]), self._start_inputs


class CustomHelper(_SamplingHelper):
    """A helper made of functions."""

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: tf.DType | None = None,
    ) -> None:
        self._initialize = initialize_fn
        self._sample = sample_fn
        self._next_inputs = next_inputs_fn
        self._shape = tf.TensorShape(() if sample_ids_shape is None else sample_ids_shape)
        self._dtype = tf.int32 if sample_ids_dtype is None else sample_ids_dtype

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with tf.name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize()
            if self._batch_size is None:
                self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name, "CustomHelperSample", (time, outputs, state)):
            return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "CustomHelperNextInputs", (time, outputs, state)):
            return self._next_inputs(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(_SamplingHelper):
    """Feeds given inputs: step t gets those of time t."""

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ) -> None:
        with tf.name_scope(name, "TrainingHelper", [inputs, sequence_length]):
            inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._inputs = inputs
            if not time_major:
                inputs = tf.nest.map_structure(_transpose_batch_time, inputs)
            self._arrays = tf.nest.map_structure(_unstack_ta, inputs)
            self._lengths = tf.convert_to_tensor(sequence_length, name="sequence_length")
            if self._lengths.shape.rank != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._lengths.shape}"
                )
            self._zero_inputs = tf.nest.map_structure(lambda x: tf.zeros_like(x[0, :]), inputs)
            self._batch_size = tf.size(self._lengths)

    @property
    def inputs(self) -> Any:
        return self._inputs

    @property
    def sequence_length(self) -> tf.Tensor:
        return self._lengths

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with tf.name_scope(name, "TrainingHelperInitialize"):
            finished = tf.equal(0, self._lengths)
            return finished, self._read(finished, 0)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name, "TrainingHelperSample", [time, outputs]):
            return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "TrainingHelperNextInputs", [time, outputs]):
            next_time = time + 1
            finished = next_time >= self._lengths
            return finished, self._read(finished, next_time), state

    def _read(self, finished: tf.Tensor, time: Any) -> Any:
        return tf.cond(
            tf.reduce_all(finished),
            lambda: self._zero_inputs,
            lambda: tf.nest.map_structure(lambda array: array.read(time), self._arrays),
        )


def _unstack_ta(x: tf.Tensor) -> tf.TensorArray:
    array = tf.TensorArray(x.dtype, size=tf.shape(x)[0], element_shape=x.shape[1:])
    return array.unstack(x)


class GreedyEmbeddingHelper(_SamplingHelper):
    """Takes the most likely id, and embeds it for the next step."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embed = embedder(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
        if self._start_tokens.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        self._batch_size = tf.size(self._start_tokens)
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._start_inputs = self._embed(self._start_tokens)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        _check_one_tensor(outputs)
        return tf.argmax(outputs, axis=-1, output_type=tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = tf.equal(sample_ids, self._end_token)
        inputs = tf.cond(
            tf.reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embed(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Samples an id from the logits, divided by an optional temperature, and embeds it."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        _check_one_tensor(outputs)
        logits = outputs if self._temperature is None else outputs / self._temperature
        return sampled(logits, self._seed)


class InferenceHelper(_SamplingHelper):
    """Samples with `sample_fn`, and feeds `next_inputs_fn` of the sample."""

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: tf.DType,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample = sample_fn
        self._end = end_fn
        self._shape = tf.TensorShape(sample_shape)
        self._dtype = sample_dtype
        self._next_inputs = next_inputs_fn or (lambda samples: samples)
        self._start_inputs = tf.convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = tf.shape(start_inputs)[0]

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        return self._end(sample_ids), self._next_inputs(sample_ids), state


def embedder(embedding: Any) -> Callable[[Any], Any]:
    """A function from ids to embeddings, from a function or a table."""
    if callable(embedding):
        return embedding
    return lambda ids: tf.nn.embedding_lookup(embedding, ids)


def sampled(logits: tf.Tensor, seed: int | None) -> tf.Tensor:
    return tf.distributions.Categorical(logits=logits).sample(seed=seed)


def _check_one_tensor(outputs: Any) -> None:
    if not tf.is_tensor(outputs):
        raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
