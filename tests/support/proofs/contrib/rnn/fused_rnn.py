"""Proofs of cells and networks that had kernels of their own."""

import pytest
import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn import legacy_cells

from support.proofs import below, evaluate, proves

CELLS = "tf.contrib.rnn"


@proves(*below(CELLS, "LSTMBlockCell GRUBlockCell GRUBlockCellV2"))
def is_a_cell(cell):
    def build():
        return tf.nn.dynamic_rnn(cell(3), tf.ones([2, 4, 5]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 4, 3)


@proves("tf.contrib.rnn.LSTMBlockFusedCell", "tf.contrib.rnn.python.ops.lstm_ops")
def runs_a_sequence(module):
    fused = getattr(module, "LSTMBlockFusedCell", module)
    assert evaluate(lambda: fused(3)(tf.ones([4, 2, 5]), dtype=tf.float32)[0]).shape == (4, 2, 3)


@proves(*below(CELLS, "FusedRNNCellAdaptor TimeReversedFusedRNN"))
def adapts_a_cell(adaptor):
    def turned(inputs, **given):
        return inputs, given

    def build():
        of_cell = adaptor.__name__ == "FusedRNNCellAdaptor"
        whole = adaptor(legacy_cells.GRUCell(4) if of_cell else turned)
        return whole(tf.zeros([2, 3, 4]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)


@proves(f"{CELLS}.FusedRNNCell")
def is_for_cells_of_ones_own(cell):
    with pytest.raises(NotImplementedError):
        cell()([tf.ones([1, 1])])
