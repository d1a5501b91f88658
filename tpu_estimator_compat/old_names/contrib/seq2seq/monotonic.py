"""Monotonic attention: weights of times, from the probabilities to stop at each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> tf.Tensor:
    """`tf.cumprod` of numbers in [0, 1], via logarithms, with a gradient at 0."""
    with tf.name_scope(None, "SafeCumprod", [x]):
        x = tf.convert_to_tensor(x, name="x")
        tiny = np.finfo(x.dtype.as_numpy_dtype).tiny
        return tf.exp(tf.cumsum(tf.log(tf.clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> tf.Tensor:
    """Weights [batch, time] that never move back in time.

    `p_choose_i` are the probabilities to stop at each time, [batch, time]; `previous_attention` the
    weights of the step before. Modes: "recursive"; "parallel", the same with cumulative sums and
    less exact; "hard", with probabilities and weights of 0 or 1.
    """
    p_choose_i = tf.convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = tf.convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        return _recursive(p_choose_i, previous)
    if mode == "parallel":
        going_on = safe_cumprod(1 - p_choose_i, axis=1, exclusive=True)
        shares = previous / tf.clip_by_value(going_on, 1e-10, 1.0)
        return p_choose_i * going_on * tf.cumsum(shares, axis=1)
    if mode == "hard":
        p_choose_i *= tf.cumsum(previous, axis=1)
        return p_choose_i * tf.cumprod(1 - p_choose_i, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _recursive(p_choose_i: tf.Tensor, previous: tf.Tensor) -> tf.Tensor:
    """The weights: at each time, `p_choose_i` times the probability to reach that time."""
    batch = tf.shape(p_choose_i)[0]
    ones = tf.ones([batch, 1], p_choose_i.dtype)
    going_on = tf.concat([ones, 1 - p_choose_i[:, :-1]], 1)
    reaching = tf.scan(
        lambda reached, of_time: of_time[0] * reached + of_time[1],
        [tf.transpose(going_on), tf.transpose(previous)],
        initializer=tf.zeros([batch], p_choose_i.dtype),
    )
    return p_choose_i * tf.transpose(reaching)


def monotonic_probability_fn(
    score: tf.Tensor,
    previous_alignments: tf.Tensor,
    sigmoid_noise: float,
    mode: str,
    seed: int | None = None,
) -> tf.Tensor:
    """Weights from scores and previous weights; noise pushes the choices to 0 or 1."""
    if sigmoid_noise > 0:
        noise = tf.random_normal(tf.shape(score), dtype=score.dtype, seed=seed)
        score += sigmoid_noise * noise
    choice = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
    return monotonic_attention(choice, previous_alignments, mode)
