"""Operations on tensors with beams: tile, split, merge, gather, trace back to parents."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Repeats each entry of the batch `multiplier` times, side by side."""
    with tf.name_scope(name, "tile_batch", [*tf.nest.flatten(t), multiplier]):
        return tf.nest.map_structure(lambda tensor: _tile_batch(tensor, multiplier), t)


def _tile_batch(tensor: Any, multiplier: int) -> tf.Tensor:
    tensor = tf.convert_to_tensor(tensor, name="t")
    if tensor.shape.rank is None:
        raise ValueError("t must have statically known rank")
    tiled = tf.repeat(tensor, multiplier, axis=0)
    batch, times = tf.compat.dimension_value(tensor.shape[0]), tf.get_static_value(multiplier)
    known = batch is not None and times is not None
    tiled.set_shape([int(batch * times) if known else None, *tensor.shape[1:]])
    return tiled


def split(t: tf.Tensor, batch_size: Any, beam_width: int) -> tf.Tensor:
    """Reshapes [batch * beams, ...] to [batch, beams, ...]."""
    rest = t.shape[1:]
    made = tf.reshape(t, tf.concat([[batch_size, beam_width], tf.shape(t)[1:]], 0))
    made.set_shape([tf.get_static_value(batch_size), beam_width, *rest])
    return made


def merged(t: tf.Tensor, batch_size: Any, beam_width: int) -> tf.Tensor:
    """Reshapes [batch, beams, ...] to [batch * beams, ...]."""
    rest = t.shape[2:]
    made = tf.reshape(t, tf.concat([[batch_size * beam_width], tf.shape(t)[2:]], 0))
    static = tf.get_static_value(batch_size)
    made.set_shape([None if static is None else int(static) * beam_width, *rest])
    return made


def of_parents(t: tf.Tensor, parents: tf.Tensor) -> tf.Tensor:
    """Gathers the parts of `t`, [batch, beams, ...], at the beams `parents`, [batch, beams]."""
    return tf.ensure_shape(tf.gather(t, parents, batch_dims=1), t.shape)


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any
) -> tf.Tensor:
    """The ids of whole beams, [time, batch, beams], from the ids and parents of all steps.

    Beams are traced back from step `max_sequence_lengths` [batch]. All ids after a beam's first
    `end_token` become `end_token`.
    """
    step_ids = tf.convert_to_tensor(step_ids, name="step_ids")
    parent_ids = tf.convert_to_tensor(parent_ids, name="parent_ids")
    end = tf.cast(end_token, step_ids.dtype)
    chosen = traced_beams(parent_ids, max_sequence_lengths)
    ids = tf.where(chosen < 0, tf.fill(tf.shape(chosen), end), _at(step_ids, chosen))
    ended = tf.cumsum(tf.cast(tf.equal(ids, end), tf.int32), axis=0, exclusive=True) > 0
    return tf.where(ended, tf.fill(tf.shape(ids), end), ids)


def traced_beams(parent_ids: tf.Tensor, lengths: Any) -> tf.Tensor:
    """The beam of each step that led to each last beam, [time, batch, beams]; -1 after the end."""
    shape = tf.shape(parent_ids)
    own = tf.broadcast_to(tf.range(shape[2]), shape[1:])
    lengths = tf.cast(lengths, tf.int32)[:, tf.newaxis]

    def earlier(carried: tuple[Any, Any], of_time: tuple[Any, Any]) -> tuple[Any, Any]:
        time, parents = of_time
        beams = carried[0]
        counts = tf.broadcast_to(time < lengths, tf.shape(beams))
        going_on = tf.where(counts, tf.gather(parents, beams, batch_dims=1), beams)
        return going_on, tf.where(counts, beams, tf.fill(tf.shape(beams), -1))

    times = tf.range(shape[0])
    _, chosen = tf.scan(earlier, (times, tf.cast(parent_ids, tf.int32)), (own, own), reverse=True)
    chosen.set_shape(parent_ids.shape)
    return chosen


def sorted_by_beam(array: tf.Tensor, parent_ids: tf.Tensor, lengths: Any) -> tf.Tensor:
    """Reorders values of steps, [time, batch, beams, ...], to the beams that they led to.

    Values after a beam's length, [batch, beams], stay in place.
    """
    chosen = traced_beams(parent_ids, tf.reduce_max(lengths, axis=1))
    own = tf.broadcast_to(tf.range(tf.shape(chosen)[2]), tf.shape(chosen))
    counts = tf.transpose(tf.sequence_mask(lengths, tf.shape(chosen)[0]), [2, 0, 1])
    return _at(array, tf.where(counts, chosen, own))


def _at(t: tf.Tensor, beams: tf.Tensor) -> tf.Tensor:
    return tf.gather(t, tf.maximum(beams, 0), batch_dims=2)
