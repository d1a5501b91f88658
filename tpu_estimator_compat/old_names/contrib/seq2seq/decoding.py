"""The decoder interface, and the decoding loop."""

from __future__ import annotations

import abc
import contextlib
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import control_flow_util, control_flow_util_v2
from tensorflow.python.ops.rnn import _transpose_batch_time
from tensorflow.python.ops.rnn_cell_impl import _zero_state_tensors


class Decoder(abc.ABC):
    """The interface that `dynamic_decode` calls: a state, and a step that computes outputs."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences."""

    @property
    @abc.abstractmethod
    def output_size(self) -> Any:
        """Shapes of a step's outputs, without the batch."""

    @property
    @abc.abstractmethod
    def output_dtype(self) -> Any:
        """Types of a step's outputs."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are finished before the first step, its inputs, and its state."""

    @abc.abstractmethod
    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """A step's outputs, the next state, the next inputs, and which sequences are finished."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The final outputs and state, from outputs [time, batch, ...] and the last state."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` returns `finished` for all sequences, because it may reorder them."""
        return False


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs steps of a decoder until all sequences are finished.

    With `impute_finished`, finished sequences keep their state and output zeros.

    Returns:
      Outputs of all steps, [batch, time, ...] or time-major; the last state; lengths [batch].
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with tf.variable_scope(scope, "decoder") as variables:
        if variables.caching_device is None and not _in_loop():
            variables.set_caching_device(lambda op: op.device)
        loop = _Loop(decoder, impute_finished, _limit(maximum_iterations))
        outputs, state, lengths = loop.run(parallel_iterations, swap_memory)
        with contextlib.suppress(NotImplementedError):  # finalize is optional
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(_transpose_batch_time, outputs)
    return outputs, state, lengths


def _in_loop() -> bool:
    graph = tf.get_default_graph()
    outer = control_flow_util.GetContainingWhileContext(graph._get_control_flow_context())
    return outer is not None or control_flow_util_v2.in_while_loop_defun(graph)


def _limit(maximum_iterations: Any) -> tf.Tensor | None:
    if maximum_iterations is None:
        if control_flow_util.GraphOrParentsInXlaContext(tf.get_default_graph()):
            raise ValueError("maximum_iterations is required for XLA compilation.")
        return None
    limit = tf.convert_to_tensor(maximum_iterations, tf.int32, name="maximum_iterations")
    if limit.shape.rank != 0:
        raise ValueError("maximum_iterations must be a scalar")
    return limit


class _Loop:
    """The decoding loop; loop variables: time, outputs, state, inputs, finished, lengths."""

    def __init__(self, decoder: Decoder, impute_finished: bool, limit: tf.Tensor | None) -> None:
        self._decoder = decoder
        self._impute = impute_finished
        self._limit = limit
        size, dtype = decoder.output_size, decoder.output_dtype
        self._zeros = _create_zero_outputs(size, dtype, decoder.batch_size)

    def run(self, parallel_iterations: int, swap_memory: bool) -> tuple[Any, Any, Any]:
        finished, inputs, state = self._decoder.initialize()
        if self._limit is not None:
            finished = tf.logical_or(finished, self._limit <= 0)
        lengths = tf.zeros_like(finished, tf.int32)
        time = tf.constant(0, tf.int32)
        _, arrays, state, _, _, lengths = tf.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: tf.logical_not(
                tf.reduce_all(finished)
            ),
            self._step,
            (time, self._arrays(), state, inputs, finished, lengths),
            parallel_iterations=parallel_iterations,
            maximum_iterations=self._limit,
            swap_memory=swap_memory,
        )
        return tf.nest.map_structure(lambda array: array.stack(), arrays), state, lengths

    def _arrays(self) -> Any:
        """TensorArrays of the outputs; in XLA they cannot grow."""
        xla = control_flow_util.GraphOrParentsInXlaContext(tf.get_default_graph())
        return tf.nest.map_structure(
            lambda zeros: tf.TensorArray(
                zeros.dtype,
                size=self._limit if xla else 0,
                dynamic_size=not xla,
                element_shape=_with_batch(zeros.shape, self._decoder.batch_size),
            ),
            self._zeros,
        )

    def _step(
        self, time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
    ) -> tuple[Any, ...]:
        outputs, next_state, next_inputs, ended = self._decoder.step(time, inputs, state)
        if not self._decoder.tracks_own_finished:
            ended = tf.logical_or(ended, finished)
        lengths = tf.where(tf.logical_not(finished), tf.fill(tf.shape(lengths), time + 1), lengths)
        for kept, new in ((state, next_state), (self._zeros, outputs), (inputs, next_inputs)):
            tf.nest.assert_same_structure(kept, new)
        if self._impute:
            outputs = tf.nest.map_structure(
                lambda output, zeros: tf.where(finished, zeros, output), outputs, self._zeros
            )
            next_state = tf.nest.map_structure(
                lambda new, old: _kept(finished, new, old), next_state, state
            )
        arrays = tf.nest.map_structure(
            lambda array, output: array.write(time, output), arrays, outputs
        )
        return time + 1, arrays, next_state, next_inputs, ended, lengths


def _kept(finished: tf.Tensor, new: Any, old: Any) -> Any:
    """The old state of finished sequences; the new state of others, of scalars and TensorArrays."""
    if isinstance(old, tf.TensorArray):
        return new
    new.set_shape(old.shape)
    return new if new.shape.rank == 0 else tf.where(finished, old, new)


def _create_zero_outputs(size: Any, dtype: Any, batch_size: Any) -> Any:
    return tf.nest.map_structure(lambda s, d: _zero_state_tensors(s, batch_size, d), size, dtype)


def _with_batch(shape: tf.TensorShape, batch_size: Any) -> tf.TensorShape:
    batch = tf.get_static_value(batch_size)
    return tf.TensorShape([None if batch is None else int(batch)]).concatenate(shape[1:])
