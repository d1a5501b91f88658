import pytest
import tensorflow.compat.v1 as tf
from tf_keras.src.layers.rnn import legacy_cells

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
        with pytest.raises(ValueError, match="rank >= 2"):
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


@proves(f"{CELLS}.PhasedLSTMCell")
def has_phases(cell):
    def build():
        inputs = (tf.ones([2, 3, 1]), tf.ones([2, 3, 5]))
        return tf.nn.dynamic_rnn(cell(4), inputs, dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)


@proves("tf.contrib.cudnn_rnn")
def has_layers_and_cells(module):
    def layer():
        return module.CudnnGRU(2, 3)(tf.ones([4, 2, 5]))[0]

    def cell():
        compatible = module.CudnnCompatibleLSTMCell(3)
        return tf.nn.dynamic_rnn(compatible, tf.ones([4, 2, 5]), dtype=tf.float32)[0]

    assert evaluate(layer).shape == evaluate(cell).shape == (4, 2, 3)
