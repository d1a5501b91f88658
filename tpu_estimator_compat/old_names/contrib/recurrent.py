"""`tf.contrib.recurrent`: `tf.nn.dynamic_rnn` with other ends of sequences.

The original unrolled cells by functional operations, which a TPU compiled when it could not compile
`tf.nn.dynamic_rnn`. Outputs, states and names of variables are the same, and gradients too, but for
one case in which those of TensorFlow 1.15 were wrong: `reverse` with a first state that is not
zero, where no example has all steps.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

Nest = Any  # a tensor, or a structure of tensors


def functional_rnn(
    cell: Any,
    inputs: Nest,
    sequence_length: Any = None,
    initial_state: Nest | None = None,
    dtype: tf.DType | None = None,
    time_major: bool = False,
    scope: Any = None,
    use_tpu: bool = False,
    reverse: bool = False,
) -> tuple[tf.Tensor, Nest]:
    """`tf.nn.dynamic_rnn`, also backwards.

    Args:
      cell: as in `tf.nn.dynamic_rnn`, as are the next five, and `scope`.
      inputs: tensors of a batch and time, in the order that `time_major` says.
      sequence_length: steps of each example; outputs after them are zero.
      initial_state: None for zeros.
      dtype: type of these zeros.
      time_major: whether time is the first dimension.
      scope: scope of the variables; None for "rnn".
      use_tpu: has no effect: one graph runs anywhere.
      reverse: whether to start at the end of the longest example. The steps that shorter ones have
        not are steps too.

    Returns:
      All outputs, and the last state. That of an example without a step is zero.
    """
    del use_tpu
    if initial_state is None:
        axis = 1 if time_major else 0
        initial_state = cell.zero_state(tf.shape(tf.nest.flatten(inputs)[0])[axis], dtype)
    lengths = None if sequence_length is None else tf.convert_to_tensor(sequence_length)
    if reverse:
        return _backwards(cell, inputs, lengths, initial_state, time_major, scope)
    outputs, state = tf.nn.dynamic_rnn(
        cell, inputs, lengths, initial_state, time_major=time_major, scope=scope
    )
    if lengths is not None:
        stepped = tf.expand_dims(lengths > 0, -1)
        state = tf.nest.map_structure(lambda part: part * tf.cast(stepped, part.dtype), state)
    return outputs, state


def _backwards(
    cell: Any, inputs: Nest, lengths: tf.Tensor | None, state: Nest, time_major: bool, scope: Any
) -> tuple[tf.Tensor, Nest]:
    """Runs from the end of the longest example to the first step, all examples alike."""
    longest = None if lengths is None else tf.ones_like(lengths) * tf.reduce_max(lengths)
    outputs, state = tf.nn.dynamic_rnn(
        cell,
        _reversed(inputs, longest, time_major),
        longest,
        state,
        time_major=time_major,
        scope=scope,
    )
    outputs = _reversed(outputs, longest, time_major)
    if lengths is None:
        return outputs, state
    steps = tf.shape(outputs)[0 if time_major else 1]
    kept = tf.sequence_mask(lengths, steps, outputs.dtype)
    return outputs * tf.expand_dims(tf.transpose(kept) if time_major else kept, -1), state


def bidirectional_functional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Nest,
    initial_state_fw: Nest | None = None,
    initial_state_bw: Nest | None = None,
    dtype: tf.DType | None = None,
    sequence_length: Any = None,
    time_major: bool = False,
    use_tpu: bool = False,
    fast_reverse: bool = False,
    scope: Any = None,
) -> tuple[tuple[tf.Tensor, tf.Tensor], tuple[Nest, Nest]]:
    """`tf.nn.bidirectional_dynamic_rnn`, also with batches that are reversed as a whole.

    Args:
      cell_fw: cell that goes forwards.
      cell_bw: cell that goes backwards.
      inputs: as in `functional_rnn`.
      initial_state_fw: first state of `cell_fw`; None for zeros.
      initial_state_bw: first state of `cell_bw`; None for zeros.
      dtype: as in `functional_rnn`, as are the next three.
      sequence_length: steps of each example.
      time_major: whether time is the first dimension.
      use_tpu: has no effect.
      fast_reverse: whether to reverse the batch, and not each example by its own length.
      scope: scope of the variables; None for "bidirectional_rnn".

    Returns:
      Both outputs, and both last states.
    """
    lengths = sequence_length

    def run(cell: Any, examples: Nest, state: Nest | None, name: str, reverse: bool) -> Any:
        with tf.variable_scope(name) as inner:
            return functional_rnn(
                cell, examples, lengths, state, dtype, time_major, inner, use_tpu, reverse
            )

    with tf.variable_scope(scope or "bidirectional_rnn"):
        output_fw, state_fw = run(cell_fw, inputs, initial_state_fw, "fw", False)
        turned = inputs if fast_reverse else _reversed(inputs, lengths, time_major)
        output_bw, state_bw = run(cell_bw, turned, initial_state_bw, "bw", fast_reverse)
    if not fast_reverse:
        output_bw = _reversed(output_bw, lengths, time_major)
    return (output_fw, output_bw), (state_fw, state_bw)


def _reversed(tensors: Nest, lengths: Any, time_major: bool) -> Nest:
    """Turns time around; with lengths, that of each example alone."""
    time, batch = (0, 1) if time_major else (1, 0)
    if lengths is None:
        return tf.nest.map_structure(lambda tensor: tf.reverse(tensor, [time]), tensors)
    return tf.nest.map_structure(
        lambda tensor: tf.reverse_sequence(tensor, lengths, seq_axis=time, batch_axis=batch),
        tensors,
    )


__all__ = ["bidirectional_functional_rnn", "functional_rnn"]
