"""Cells of `tf.contrib.rnn`; what they compute is checked in `test_cells.py`."""

import pytest
import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn import legacy_cells

from ..proofs import below, evaluate, proves, variables_of

CELLS = "tf.contrib.rnn"
UNITS = (
    "CFNCell CoupledInputForgetGateLSTMCell GLSTMCell IndRNNCell IndyGRUCell IndyLSTMCell "
    "IntersectionRNNCell LayerNormLSTMCell MinimalRNNCell NASCell SRUCell UGRNNCell "
    "WeightNormLSTMCell"
)


def run(cell, *depths):
    inputs = tf.ones([2, 3, *depths])
    return tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]


@proves(*below(CELLS, UNITS))
def has_units(cell):
    assert evaluate(lambda: run(cell(4), 4)).shape == (2, 3, 4)


@proves(f"{CELLS}.PhasedLSTMCell")
def has_phases(cell):
    def build():
        inputs = (tf.ones([2, 3, 1]), tf.ones([2, 3, 5]))
        return tf.nn.dynamic_rnn(cell(4), inputs, dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)


@proves(f"{CELLS}.ConvLSTMCell")
def convolves(cell):
    shape = evaluate(lambda: run(cell(1, [4, 2], 3, [2]), 4, 2)).shape
    assert shape == (2, 3, 4, 3)


@proves(*below(CELLS, "Conv1DLSTMCell Conv2DLSTMCell Conv3DLSTMCell"))
def convolves_dimensions(cell):
    n = int(cell.__name__[4])
    arguments = {"input_shape": [4] * n + [2], "output_channels": 3, "kernel_shape": [2] * n}
    names = variables_of(lambda: run(cell(**arguments), *[4] * n, 2))
    assert names == [f"rnn/conv_{n}d_lstm_cell/{name}" for name in ("kernel", "biases")]


@proves(*below(CELLS, "AttentionCellWrapper InputProjectionWrapper OutputProjectionWrapper"))
@proves(f"{CELLS}.HighwayWrapper")
def wraps_a_cell(wrapper):
    numbers = [] if wrapper.__name__ == "HighwayWrapper" else [4]
    assert evaluate(lambda: run(wrapper(legacy_cells.GRUCell(4), *numbers), 4)).shape == (2, 3, 4)


@proves(f"{CELLS}.EmbeddingWrapper")
def embeds(wrapper):
    def build():
        ids = tf.ones([2, 3, 1], tf.int32)
        return tf.nn.dynamic_rnn(wrapper(legacy_cells.GRUCell(4), 5, 2), ids, dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)
    assert "rnn/embedding_wrapper/embedding" in variables_of(build)


@proves(f"{CELLS}.LayerRNNCell")
def is_a_base_of_cells(base):
    class Sum(base):
        state_size = output_size = 2

        def call(self, inputs, state):
            return state + inputs, state + inputs

    assert evaluate(lambda: run(Sum(), 2)).tolist() == [[[1, 1], [2, 2], [3, 3]]] * 2


@proves(f"{CELLS}.python.ops.gru_ops")
def has_block_cells(module):
    assert evaluate(lambda: run(module.GRUBlockCell(4), 5)).shape == (2, 3, 4)


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


RECURRENT = "tf.contrib.recurrent"


@proves(*below(RECURRENT, ". python.ops.functional_rnn"))
def unrolls_functionally(module):
    def build():
        cell = legacy_cells.GRUCell(4)
        return module.functional_rnn(cell, tf.ones([2, 3, 4]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)
    assert callable(module.bidirectional_functional_rnn)
