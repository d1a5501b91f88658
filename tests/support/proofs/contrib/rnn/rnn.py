"""Proofs of `tf.contrib.rnn`; what cells compute is tested in `tests/old_names/contrib`."""

import pytest
import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, proves, variables_of

CELLS = "tf.contrib.rnn"
UNITS = "CoupledInputForgetGateLSTMCell GLSTMCell IndRNNCell IndyLSTMCell NASCell SRUCell UGRNNCell"


def run(cell, *depths):
    inputs = tf.ones([2, 3, *depths])
    return tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]


@proves(*below(CELLS, UNITS))
def has_units(cell):
    assert evaluate(lambda: run(cell(4), 4)).shape == (2, 3, 4)


@proves(f"{CELLS}.LayerRNNCell")
def is_a_base_of_cells(base):
    class Sum(base):
        state_size = output_size = 2

        def call(self, inputs, state):
            return state + inputs, state + inputs

    assert evaluate(lambda: run(Sum(), 2)).tolist() == [[[1, 1], [2, 2], [3, 3]]] * 2


@proves(f"{CELLS}.best_effort_input_batch_size")
def knows_the_batch(size):
    with tf.Graph().as_default():
        unknown, known = tf.placeholder(tf.float32), tf.zeros([5, 3, 2])
        assert size([unknown, known]) == 3
        with pytest.raises(ValueError, match="to have rank at least 2"):
            size([tf.zeros([5])])
    assert evaluate(lambda: size([tf.placeholder_with_default(known_zeros(), None)])) == 3


def known_zeros():
    return tf.zeros([5, 3, 2])


@proves("tf.contrib.rnn")
def has_networks(rnn):
    def build():
        def cells():
            return [rnn.BasicLSTMCell(2), rnn.LayerNormBasicLSTMCell(3)]

        outputs, states, _ = rnn.stack_bidirectional_dynamic_rnn(
            cells(), cells(), tf.ones([1, 4, 5]), dtype=tf.float32
        )
        assert isinstance(states[1], rnn.LSTMStateTuple)
        unrolled, _ = rnn.static_rnn(rnn.GRUCell(2), [tf.ones([1, 3])] * 2, dtype=tf.float32)
        stacked, _, _ = rnn.stack_bidirectional_rnn(
            [rnn.LSTMCell(2)], [rnn.LSTMCell(2)], [tf.ones([1, 3])] * 2, dtype=tf.float32
        )
        return outputs, unrolled[-1], stacked[0], rnn.transpose_batch_time(tf.ones([2, 3, 4]))

    shapes = [array.shape for array in evaluate(build)]
    assert shapes == [(1, 4, 6), (1, 2), (1, 4), (3, 2, 4)]
    prefix = "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/layer_norm_basic_lstm_cell"
    names = variables_of(build)
    assert f"{prefix}/kernel" in names
    assert f"{prefix}/input/gamma" in names
