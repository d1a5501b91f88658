"""Training helpers that sample some inputs, with a probability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops.rnn import _transpose_batch_time

from tpu_estimator_compat.old_names.contrib.seq2seq.helpers import (
    TrainingHelper,
    _unstack_ta,
    embedder,
    sampled,
)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Embeds a sample in place of the given input, with a probability, scalar or [batch].

    The sample is -1 where the given input is used.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(
            name, "ScheduledEmbeddingSamplingWrapper", [embedding, sampling_probability]
        ):
            self._embed = embedder(embedding)
            self._probability = tf.convert_to_tensor(sampling_probability)
            _check_probability(self._probability, {0, 1}, "scalar or vector")
            self._seed, self._scheduling_seed = seed, scheduling_seed
            super().__init__(inputs, sequence_length, time_major)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperSample", [time, outputs]):
            chosen = _chosen(self._probability, self._batch_size, self._scheduling_seed)
            return tf.where(chosen, sampled(outputs, self._seed), tf.fill([self._batch_size], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs", [time, outputs]):
            finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
            inputs = tf.cond(
                tf.reduce_all(finished),
                lambda: inputs,
                lambda: _mixed(
                    sample_ids > -1,
                    lambda where: self._embed(tf.gather_nd(sample_ids, where)),
                    inputs,
                ),
            )
            return finished, inputs, state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds a step's output in place of the given input, with a probability.

    `next_inputs_fn`, such as a layer, maps an output to an input; `auxiliary_inputs` are appended.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name, "ScheduledOutputTrainingHelper", [inputs, auxiliary_inputs]):
            self._probability = tf.convert_to_tensor(sampling_probability)
            _check_probability(self._probability, {0}, "scalar")
            self._seed = seed
            self._from_outputs = next_inputs_fn or (lambda outputs: outputs)
            self._auxiliary: Any = None
            if auxiliary_inputs is not None:
                auxiliary = tf.convert_to_tensor(auxiliary_inputs)
                inputs = tf.nest.map_structure(lambda x: tf.concat([x, auxiliary], axis=-1), inputs)
                self._auxiliary = _unstack_ta(
                    auxiliary if time_major else _transpose_batch_time(auxiliary)
                )
            super().__init__(inputs, sequence_length, time_major)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        with tf.name_scope(name, "ScheduledOutputTrainingHelperSample", [time, outputs]):
            return tf.cast(_chosen(self._probability, self._batch_size, self._seed), tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with tf.name_scope(name, "ScheduledOutputTrainingHelperNextInputs", [time, outputs]):
            finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
            chosen = tf.cast(sample_ids, tf.bool)
            inputs = tf.cond(
                tf.logical_or(tf.reduce_all(finished), tf.logical_not(tf.reduce_any(chosen))),
                lambda: inputs,
                lambda: _mixed(
                    chosen, lambda where: self._of_outputs(outputs, where, time + 1), inputs
                ),
            )
            return finished, inputs, state

    def _of_outputs(self, outputs: tf.Tensor, where: tf.Tensor, next_time: Any) -> tf.Tensor:
        made = self._from_outputs(tf.gather_nd(outputs, where))
        if self._auxiliary is None:
            return made
        auxiliary = tf.gather_nd(self._auxiliary.read(next_time), where)
        return tf.concat([made, auxiliary], axis=-1)


def _chosen(probability: tf.Tensor, batch_size: Any, seed: int | None) -> tf.Tensor:
    draws = tf.distributions.Bernoulli(probs=probability, dtype=tf.bool)
    shape = batch_size if probability.shape.rank == 0 else ()
    return draws.sample(sample_shape=shape, seed=seed)


def _mixed(chosen: Any, made: Callable[[tf.Tensor], tf.Tensor], inputs: tf.Tensor) -> tf.Tensor:
    where = tf.cast(tf.where(chosen), tf.int32)
    others = tf.cast(tf.where(tf.logical_not(chosen)), tf.int32)
    shape = tf.shape(inputs)
    mixed = tf.scatter_nd(where, made(where), shape)
    mixed += tf.scatter_nd(others, tf.gather_nd(inputs, others), shape)
    mixed.set_shape(inputs.shape)
    return mixed


def _check_probability(probability: tf.Tensor, ranks: set[int], expected: str) -> None:
    if probability.shape.rank not in ranks:
        raise ValueError(
            f"sampling_probability must be a {expected}. saw shape: {probability.shape}"
        )
