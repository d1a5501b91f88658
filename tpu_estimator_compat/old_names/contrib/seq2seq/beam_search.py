"""A decoder that does beam search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf
from keras import Layer as Keras3Layer
from tensorflow.python.ops.rnn_cell_impl import assert_like_rnncell
from tf_keras.api._v1.keras.layers import Layer

from tpu_estimator_compat.old_names.contrib.seq2seq import beams
from tpu_estimator_compat.old_names.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from tpu_estimator_compat.old_names.contrib.seq2seq.decoding import Decoder
from tpu_estimator_compat.old_names.contrib.seq2seq.helpers import embedder


class BeamSearchDecoderState(NamedTuple):
    """The cell state, and each beam's log probability, whether it is finished, and length."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """A step's scores and ids by beam, and the index of each beam's parent."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Ids of whole beams, best first, and the outputs of the steps."""

    predicted_ids: Any
    beam_search_decoder_output: BeamSearchDecoderOutput


def _beam_search_step(
    time: Any,
    logits: tf.Tensor,
    next_cell_state: Any,
    beam_state: BeamSearchDecoderState,
    batch_size: Any,
    beam_width: int,
    end_token: Any,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
    del time
    going_on = tf.cast(tf.logical_not(beam_state.finished), tf.int64)[:, :, tf.newaxis]
    steps = _mask_probs(tf.nn.log_softmax(logits), end_token, beam_state.finished)
    log_probs = beam_state.log_probs[:, :, tf.newaxis] + steps
    attended = _attended(next_cell_state, coverage_penalty_weight)
    if attended is not None:
        attended *= tf.cast(going_on, attended.dtype)
        attended += beam_state.accumulated_attention_probs
    ids = tf.shape(logits)[-1]
    longer = tf.one_hot(end_token, ids, 0, 1, dtype=tf.int64)  # 1 for all ids but the end token
    lengths = beam_state.lengths[:, :, tf.newaxis] + longer * going_on
    weights = length_penalty_weight, coverage_penalty_weight
    scores = _get_scores(log_probs, lengths, *weights, beam_state.finished, attended)
    best, places = tf.nn.top_k(tf.reshape(scores, [batch_size, -1]), beam_width)
    output = BeamSearchDecoderOutput(best, places % ids, places // ids)
    for chosen in output:
        chosen.set_shape(beam_state.log_probs.shape)
    flat = tf.reshape(log_probs, [batch_size, -1])
    log_probs = tf.gather(flat, places, batch_dims=1, name="next_beam_probs")
    log_probs.set_shape(beam_state.log_probs.shape)

    def of_parents(t: Any) -> Any:
        batchless = isinstance(t, tf.TensorArray) or t.shape.rank == 0
        return t if batchless else beams.of_parents(t, output.parent_ids)

    finished = of_parents(beam_state.finished)
    return output, BeamSearchDecoderState(
        cell_state=tf.nest.map_structure(of_parents, next_cell_state),
        log_probs=log_probs,
        finished=tf.logical_or(finished, tf.equal(output.predicted_ids, end_token)),
        lengths=of_parents(beam_state.lengths) + tf.cast(tf.logical_not(finished), tf.int64),
        accumulated_attention_probs=() if attended is None else of_parents(attended),
    )


def _mask_probs(probs: tf.Tensor, eos_token: Any, finished: tf.Tensor) -> tf.Tensor:
    """Log probabilities: a finished beam continues with the end token only, at no cost."""
    ended = tf.one_hot(eos_token, tf.shape(probs)[-1], 0.0, probs.dtype.min, dtype=probs.dtype)
    return tf.where_v2(finished[:, :, tf.newaxis], ended, probs)


def _get_scores(
    log_probs: tf.Tensor,
    sequence_lengths: tf.Tensor,
    length_penalty_weight: Any,
    coverage_penalty_weight: Any,
    finished: tf.Tensor,
    accumulated_attention_probs: Any,
) -> tf.Tensor:
    scores = log_probs / _length_penalty(sequence_lengths, length_penalty_weight)
    attended = accumulated_attention_probs
    if attended is None:
        return scores
    # Times without any weight, such as those after the end of the memory, do not count.
    attended = tf.where(tf.equal(attended, 0.0), tf.ones_like(attended), attended)
    covered = tf.reduce_sum(tf.log(tf.minimum(attended, 1.0)), 2)
    covered *= tf.cast(finished, covered.dtype)
    return scores + (covered * coverage_penalty_weight)[:, :, tf.newaxis]


def _length_penalty(sequence_lengths: tf.Tensor, penalty_weight: Any) -> Any:
    weight = tf.convert_to_tensor(penalty_weight, name="penalty_weight")
    if tf.get_static_value(weight) == 0:
        return 1.0
    return tf.pow((5.0 + tf.cast(sequence_lengths, tf.float32)) / 6.0, weight)


def _attended(cell_state: Any, coverage_weight: Any) -> Any:
    if tf.get_static_value(coverage_weight) == 0.0:
        return None
    states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
    several = states if isinstance(states, (list, tuple)) else ()
    found = [s.alignments for s in several if isinstance(s, AttentionWrapperState)]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attention-wrapped.")
    return _mean([_mean(one) if isinstance(one, tuple) else one for one in found])


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_width` best beams of each sequence.

    A score is a beam's log probability divided by the length penalty, ((5 + length) / 6) to the
    power of `length_penalty_weight`. With `coverage_penalty_weight`, finished beams lose score for
    parts of the memory that they did not attend to. Tile the initial state with `tile_batch`.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        assert_like_rnncell("cell", cell)
        if output_layer is not None and not isinstance(output_layer, (Layer, Keras3Layer)):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._output_layer = output_layer
        self._reorder = reorder_tensor_arrays
        self._embed = embedder(embedding)
        start = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
        if start.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size = tf.size(start)
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._initial_cell_state = tf.nest.map_structure(self._split, initial_state)
        self._start_inputs = self._embed(tf.tile(start[:, tf.newaxis], [1, beam_width]))

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        width = tf.TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(width, width, width)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def _dtype(self) -> tf.DType:
        return tf.nest.flatten(self._initial_cell_state)[0].dtype

    def _split(self, t: Any) -> Any:
        if isinstance(t, tf.TensorArray) or t.shape.rank == 0:
            return t
        return beams.split(t, self._batch_size, self._beam_width)

    def _merged(self, t: Any) -> Any:
        if isinstance(t, tf.TensorArray) or t.shape.rank == 0:
            return t
        return beams.merged(t, self._batch_size, self._beam_width)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, BeamSearchDecoderState]:
        first = tf.one_hot(
            tf.zeros([self._batch_size], tf.int32), self._beam_width, True, False, dtype=tf.bool
        )
        dtype = self._dtype.as_numpy_dtype
        shape = tf.shape(first)
        # All beams start equal: only the first one counts, so that the next beams differ.
        log_probs = tf.where(first, tf.zeros(shape, dtype), tf.fill(shape, dtype(-np.inf)))
        attended = _attended(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=tf.logical_not(first),
            lengths=tf.zeros(shape, tf.int64),
            accumulated_attention_probs=() if attended is None else attended,
        )
        return state.finished, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: BeamSearchDecoderState, name: str | None = None
    ) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState, Any, Any]:
        with tf.name_scope(name, "BeamSearchDecoderStep", (time, inputs)):
            cell_outputs, cell_state = self._cell(
                tf.nest.map_structure(self._merged, inputs),
                tf.nest.map_structure(self._merged, state.cell_state),
            )
            logits = beams.split(cell_outputs, self._batch_size, self._beam_width)
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            cell_state = tf.nest.map_structure(self._split, cell_state)
            sizes = self._batch_size, self._beam_width, self._end_token
            weights = self._length_penalty_weight, self._coverage_penalty_weight
            output, next_state = _beam_search_step(
                time, logits, cell_state, state, *sizes, *weights
            )
            next_inputs = tf.cond(
                tf.reduce_all(next_state.finished),
                lambda: self._start_inputs,
                lambda: self._embed(output.predicted_ids),
            )
        return output, next_state, next_inputs, next_state.finished

    def finalize(
        self, outputs: Any, final_state: BeamSearchDecoderState, sequence_lengths: Any
    ) -> tuple[FinalBeamSearchDecoderOutput, BeamSearchDecoderState]:
        longest = tf.cast(tf.reduce_max(final_state.lengths, axis=1), tf.int32)
        ids = beams.gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder:
            cell_state = tf.nest.map_structure(
                lambda t: self._reordered(t, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _reordered(self, t: Any, parent_ids: tf.Tensor, lengths: tf.Tensor) -> Any:
        """Sorts a TensorArray of beams, such as alignments: a tensor [time, batch * beams, ...]."""
        if not isinstance(t, tf.TensorArray):
            return t
        written = t.stack()
        time, size = tf.shape(written)[0], self._batch_size * self._beam_width
        shape = tf.concat([[time, self._batch_size, self._beam_width], tf.shape(written)[2:]], 0)
        ordered = beams.sorted_by_beam(tf.reshape(written, shape), parent_ids, lengths)
        made = tf.reshape(ordered, tf.concat([[time, size], tf.shape(written)[2:]], 0))
        return tf.ensure_shape(made, written.shape)


def _mean(tensors: Any) -> tf.Tensor:
    return tf.reduce_mean(tf.stack(tensors, -1), -1)
