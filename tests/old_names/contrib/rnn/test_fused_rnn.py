"""Cells of `tf.contrib.rnn` without kernels of their own compute what `tf.nn.rnn_cell` does."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support.sessions import session as session_of
from tf_keras.src.layers.rnn.legacy_cells import GRUCell, LSTMCell

from tpu_estimator_compat.old_names.contrib.rnn import fused_rnn

TIME, BATCH, DEPTH, UNITS = 5, 3, 4, 6
INPUTS = np.random.RandomState(0).randn(TIME, BATCH, DEPTH).astype(np.float32)
LENGTHS = [5, 0, 2]


def value_of(variable):
    """What its name in the scope, and its shape decide."""
    count = variable.shape.num_elements()
    values = np.sin(np.arange(count) + len(variable.op.name.rpartition("/")[2]))
    return values.reshape(variable.shape).astype(np.float32)


def results(*builders):
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        made = []
        for i, build in enumerate(builders):
            with tf.variable_scope(f"s{i}"):
                outputs, state = build()
            whole = tf.stack(outputs) if isinstance(outputs, list) else outputs
            variables = sorted(tf.trainable_variables(f"s{i}/"), key=lambda v: v.op.name[-8:])
            gradients = tf.gradients(tf.reduce_sum(whole**2), variables)
            made.append([whole, *tf.nest.flatten(state), *gradients])
        initial = {v.initializer.inputs[1]: value_of(v) for v in tf.global_variables()}
        session.run(tf.global_variables_initializer(), initial)
        return session.run(made)


def check_same(*builders):
    first, *others = results(*builders)
    for other in others:
        for expected, found in zip(first, other, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_lstm(lengths, peephole, clip):
    def reference():
        cell = LSTMCell(UNITS, use_peepholes=peephole, cell_clip=clip)
        return tf.nn.dynamic_rnn(
            cell, tf.constant(INPUTS), lengths, dtype=tf.float32, time_major=True
        )

    def block():
        cell = fused_rnn.LSTMBlockCell(UNITS, use_peephole=peephole, cell_clip=clip)
        return tf.nn.dynamic_rnn(
            cell, tf.constant(INPUTS), lengths, dtype=tf.float32, time_major=True
        )

    def fused():
        cell = fused_rnn.LSTMBlockFusedCell(UNITS, use_peephole=peephole, cell_clip=clip)
        return cell(tf.constant(INPUTS), dtype=tf.float32, sequence_length=lengths)

    check_same(reference, block, fused)


def test_gru():
    def of(cell):
        return tf.nn.dynamic_rnn(cell, tf.constant(INPUTS), dtype=tf.float32, time_major=True)

    check_same(lambda: of(GRUCell(UNITS)), lambda: of(fused_rnn.GRUBlockCellV2(UNITS)))
    with pytest.raises(ValueError, match="Exactly one of num_units or cell_size"):
        fused_rnn.GRUBlockCellV2()


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_backwards(lengths):
    def reference():
        lengths_or_all = lengths or [TIME] * BATCH
        turned = tf.reverse_sequence(INPUTS, lengths_or_all, seq_axis=0, batch_axis=1)
        outputs, state = tf.nn.dynamic_rnn(
            LSTMCell(UNITS), turned, lengths, dtype=tf.float32, time_major=True
        )
        return tf.reverse_sequence(outputs, lengths_or_all, seq_axis=0, batch_axis=1), state

    def backwards():
        cell = fused_rnn.TimeReversedFusedRNN(fused_rnn.LSTMBlockFusedCell(UNITS))
        return cell(tf.constant(INPUTS), dtype=tf.float32, sequence_length=lengths)

    check_same(reference, backwards)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_cells_over_sequences(dynamic, listed):
    def fused():
        return fused_rnn.LSTMBlockFusedCell(UNITS)(tf.constant(INPUTS), dtype=tf.float32)

    def adapted():
        cell = fused_rnn.FusedRNNCellAdaptor(LSTMCell(UNITS), use_dynamic_rnn=dynamic)
        inputs = tf.constant(INPUTS)
        return cell(tf.unstack(inputs) if listed else inputs, dtype=tf.float32)

    def of_a_list():
        cell = fused_rnn.LSTMBlockFusedCell(UNITS)
        return cell([tf.constant(part) for part in INPUTS], dtype=tf.float32)

    check_same(fused, adapted, of_a_list)


def test_names_of_variables_and_what_is_missing():
    with tf.Graph().as_default():
        cell = fused_rnn.LSTMBlockFusedCell(UNITS, use_peephole=True)
        state = (tf.ones([BATCH, UNITS]), tf.ones([BATCH, UNITS]))
        with tf.variable_scope("forward"):
            outputs, (last, _) = cell(tf.constant(INPUTS), state)
        assert [outputs.shape.as_list(), last.shape.as_list()] == [
            [TIME, BATCH, UNITS],
            [BATCH, UNITS],
        ]
        names = ["kernel", "bias", "w_i_diag", "w_f_diag", "w_o_diag"]
        found = [variable.op.name for variable in tf.global_variables()]
        assert found == [f"forward/lstm_fused_cell/{name}" for name in names]
        with pytest.raises(ValueError, match="Either initial_state or dtype"):
            fused_rnn.LSTMBlockFusedCell(UNITS)(tf.constant(INPUTS))
        of_any_depth = tf.placeholder(tf.float32, [TIME, BATCH, None])
        with pytest.raises(ValueError, match=r"inputs_shape\[2\] to be set"):
            fused_rnn.LSTMBlockFusedCell(UNITS)(of_any_depth, dtype=tf.float32)
