"""Proofs of cells that are variants of the LSTM."""

import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves

CELLS = "tf.contrib.rnn"


@proves(f"{CELLS}.PhasedLSTMCell")
def has_phases(cell):
    def build():
        inputs = (tf.ones([2, 3, 1]), tf.ones([2, 3, 5]))
        return tf.nn.dynamic_rnn(cell(4), inputs, dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)
