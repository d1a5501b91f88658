"""`tf.contrib.crf`: linear-chain conditional random fields.

In all functions, `inputs` and `potentials` are unary scores [batch, time, tags],
`transition_params` are scores [tags, tags] of a transition from the row's tag to the column's, and
`sequence_lengths` are integers [batch].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def crf_log_likelihood(
    inputs: tf.Tensor,
    tag_indices: tf.Tensor,
    sequence_lengths: tf.Tensor,
    transition_params: Any = None,
) -> tuple[tf.Tensor, Any]:
    """The log-likelihood [batch] of tag sequences [batch, time], and the transition scores.

    If `transition_params` is None, the scores are a new variable, `transitions`.
    """
    if transition_params is None:
        tags = tf.compat.dimension_value(inputs.shape[2])
        transition_params = tf.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_sequence_score(
    inputs: tf.Tensor, tag_indices: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """The unnormalized scores of tag sequences: a tensor [batch]."""
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def crf_unary_score(
    tag_indices: tf.Tensor, sequence_lengths: tf.Tensor, inputs: tf.Tensor
) -> tf.Tensor:
    """The sums of the unary scores of tag sequences: a tensor [batch]."""
    scores = tf.batch_gather(inputs, tag_indices[:, :, tf.newaxis])[:, :, 0]
    return tf.reduce_sum(scores * _mask(sequence_lengths, inputs), 1)


def crf_binary_score(
    tag_indices: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """The sums of the transition scores of tag sequences: a tensor [batch]."""
    steps = tf.stack([tag_indices[:, :-1], tag_indices[:, 1:]], axis=2)
    scores = tf.gather_nd(tf.convert_to_tensor(transition_params), steps)
    return tf.reduce_sum(scores * _mask(sequence_lengths, tag_indices)[:, 1:], 1)


def crf_log_norm(
    inputs: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """The logarithm of the sum of exp(score) over all tag sequences: a tensor [batch]."""

    def step(alphas: tf.Tensor, at: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        unary, counts = at
        following = unary + tf.reduce_logsumexp(alphas[:, :, tf.newaxis] + transition_params, 1)
        return tf.where(tf.tile(counts[:, tf.newaxis], [1, tf.shape(unary)[1]]), following, alphas)

    alphas = tf.foldl(step, _following(inputs, sequence_lengths), initializer=inputs[:, 0])
    norm = tf.reduce_logsumexp(alphas, 1)
    return tf.where(sequence_lengths > 0, norm, tf.zeros_like(norm))


def crf_multitag_sequence_score(
    inputs: tf.Tensor, tag_bitmap: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """The logarithm [batch] of the sum of exp(score) over the tag sequences that a bitmap allows.

    The bitmap is boolean, [batch, time, tags].
    """
    allowed = tf.where(tag_bitmap, inputs, tf.fill(tf.shape(inputs), inputs.dtype.min))
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_decode(
    potentials: tf.Tensor, transition_params: Any, sequence_length: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The best tag sequences, int32 [batch, time] with 0 after the end, and scores [batch]."""
    tags = tf.shape(potentials)[2]
    batch = tf.shape(potentials)[0]
    stay = tf.tile(tf.range(tags)[tf.newaxis], [batch, 1])

    def step(
        before: tuple[tf.Tensor, tf.Tensor], at: tuple[tf.Tensor, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        (scores, _), (unary, counts) = before, at
        ways = scores[:, :, tf.newaxis] + transition_params
        counts = tf.tile(counts[:, tf.newaxis], [1, tags])
        best = tf.where(counts, unary + tf.reduce_max(ways, 1), scores)
        return best, tf.where(counts, tf.argmax(ways, 1, output_type=tf.int32), stay)

    sequence = _following(potentials, sequence_length)
    scores, origins = tf.scan(step, sequence, initializer=(potentials[:, 0], stay))
    scores = tf.concat([potentials[tf.newaxis, :, 0], scores], 0)[-1]
    last = tf.argmax(scores, 1, output_type=tf.int32)

    def back(tag: tf.Tensor, origin: tf.Tensor) -> tf.Tensor:
        return tf.batch_gather(origin, tag[:, tf.newaxis])[:, 0]

    earlier = tf.scan(back, origins, initializer=last, reverse=True)
    decoded = tf.transpose(tf.concat([earlier, last[tf.newaxis]], 0))
    mask = tf.cast(_mask(sequence_length, potentials), tf.int32)
    best_score = tf.reduce_max(scores, 1)
    return decoded * mask, tf.where(sequence_length > 0, best_score, tf.zeros_like(best_score))


def viterbi_decode(score: np.ndarray, transition_params: np.ndarray) -> tuple[list[int], float]:
    """The best tag sequence of one example [time, tags] and its score, in NumPy."""
    scores, origins = score[0], []
    for unary in score[1:]:
        ways = scores[:, np.newaxis] + transition_params
        origins.append(ways.argmax(0))
        scores = unary + ways.max(0)
    tags = [scores.argmax()]
    for origin in reversed(origins):
        tags.append(origin[tags[-1]])
    return tags[::-1], scores.max()


def _mask(lengths: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    return tf.sequence_mask(lengths, tf.shape(like)[1], dtype=tf.float32)


def _following(inputs: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Unary scores from time 1 on, and whether each time is within its sequence; time-major."""
    within = tf.sequence_mask(lengths, tf.shape(inputs)[1])
    return tf.transpose(inputs, [1, 0, 2])[1:], tf.transpose(within)[1:]


__all__ = [
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]
