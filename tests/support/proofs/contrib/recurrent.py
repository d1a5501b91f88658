"""Proofs of `tf.contrib.recurrent`."""

import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn import legacy_cells

from support.proofs import below, evaluate, proves

RECURRENT = "tf.contrib.recurrent"


@proves(*below(RECURRENT, ". python.ops.functional_rnn"))
def unrolls_functionally(module):
    def build():
        cell = legacy_cells.GRUCell(4)
        return module.functional_rnn(cell, tf.ones([2, 3, 4]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)
    assert callable(module.bidirectional_functional_rnn)
