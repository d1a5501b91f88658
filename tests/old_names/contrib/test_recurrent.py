"""`tf.contrib.recurrent` computes what a loop over the steps of each example does."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.proofs.contrib import recurrent as proofs
from support.proofs.proving import each_proof_of
from support.sessions import session as session_of
from tf_keras.src.layers.rnn.legacy_cells import BasicRNNCell

from tpu_estimator_compat.old_names.contrib import recurrent

test_served_names = each_proof_of(proofs)

BATCH, TIME, DEPTH, UNITS = 4, 5, 3, 2
INPUTS = np.random.RandomState(0).randn(BATCH, TIME, DEPTH).astype(np.float32)
FIRST = np.full([BATCH, UNITS], 0.5, np.float32)
LENGTHS = [4, 0, 2, 3]  # none has all steps, and one has none


def weights(name):
    """Values of a variable that follow from its shape; a bias that nothing hides."""
    shape = [UNITS] if name == "bias" else [DEPTH + UNITS, UNITS]
    return np.sin(np.arange(np.prod(shape)) + 1.0).reshape(shape).astype(np.float32)


def loop(steps, kept):
    """Outputs of a loop over steps, zero where a step is not one of `kept`, and the last state."""
    outputs, state = np.zeros([BATCH, TIME, UNITS], np.float32), FIRST
    for t in steps:
        both = np.concatenate([INPUTS[:, t], state], axis=1)
        state = np.tanh(both @ weights("kernel") + weights("bias"))
        outputs[:, t] = state
    return outputs * kept[:, :, np.newaxis], state


def run(build):
    """What `build` gives with those weights, and the names of its variables."""
    with tf.Graph().as_default(), session_of() as session:
        made = build()
        variables = tf.trainable_variables()
        initial = {
            variable.initializer.inputs[1]: weights(variable.op.name.rpartition("/")[2])
            for variable in variables
        }
        session.run(tf.global_variables_initializer(), initial)
        return session.run(made), [variable.op.name for variable in variables]


def expected(lengths, reverse):
    """Backwards, all examples begin where the longest ends; forwards, each ends where it ends."""
    ends = np.array([TIME] * BATCH if lengths is None else lengths)
    kept = np.arange(TIME) < ends[:, np.newaxis]
    if reverse:
        return loop(reversed(range(max(ends))), kept)
    outputs, _ = loop(range(TIME), kept)
    last = outputs[range(BATCH), np.maximum(ends, 1) - 1]
    return outputs, last * (ends > 0)[:, np.newaxis]


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("time_major", [False, True])
def test_one_way(lengths, reverse, time_major):
    def build():
        return recurrent.functional_rnn(
            BasicRNNCell(UNITS),
            tf.constant(INPUTS.swapaxes(0, 1) if time_major else INPUTS),
            lengths,
            tf.constant(FIRST),
            time_major=time_major,
            use_tpu=True,
            reverse=reverse,
        )

    (outputs, state), names = run(build)
    found = (outputs.swapaxes(0, 1) if time_major else outputs), state
    for one, other in zip(found, expected(lengths, reverse), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    assert names == ["rnn/basic_rnn_cell/kernel", "rnn/basic_rnn_cell/bias"]


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_both_ways(lengths):
    """Reversed as a whole, the way back is that of `functional_rnn`; else that of TensorFlow."""

    def build(function, **more):
        cells = BasicRNNCell(UNITS), BasicRNNCell(UNITS)
        return function(
            *cells, tf.constant(INPUTS), dtype=tf.float32, sequence_length=lengths, **more
        )

    def backwards():
        return recurrent.functional_rnn(
            BasicRNNCell(UNITS), tf.constant(INPUTS), lengths, dtype=tf.float32, reverse=True
        )

    (outputs, states), names = run(lambda: build(recurrent.bidirectional_functional_rnn))
    (reference, last), reference_names = run(lambda: build(tf.nn.bidirectional_dynamic_rnn))
    assert names == reference_names
    np.testing.assert_allclose(outputs, reference, rtol=1e-5)
    np.testing.assert_allclose(states, last, rtol=1e-5)
    fast = {"fast_reverse": True}
    (outputs, states), _ = run(lambda: build(recurrent.bidirectional_functional_rnn, **fast))
    whole, _ = run(backwards)
    np.testing.assert_allclose(outputs[1], whole[0], rtol=1e-5)
    np.testing.assert_allclose(states[1], whole[1], rtol=1e-5)
