import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras
from support.sessions import session as session_of
from tf_keras.src.layers.rnn.legacy_cells import BasicRNNCell, MultiRNNCell

import tpu_estimator_compat as tpu
from tpu_estimator_compat.old_names.contrib import cudnn_rnn, rnn

TIME, BATCH, DEPTH, UNITS, LAYERS = 5, 3, 4, 6, 2
INPUTS = np.random.RandomState(0).randn(TIME, BATCH, DEPTH).astype(np.float32)
LENGTHS = [5, 1, 3]
CELLS = {
    cudnn_rnn.CudnnLSTM: cudnn_rnn.CudnnCompatibleLSTMCell,
    cudnn_rnn.CudnnGRU: cudnn_rnn.CudnnCompatibleGRUCell,
    cudnn_rnn.CudnnRNNTanh: BasicRNNCell,
    cudnn_rnn.CudnnRNNRelu: lambda units: BasicRNNCell(units, tf.nn.relu),
}
SCOPES = {
    cudnn_rnn.CudnnLSTM: "outer/cudnn_lstm",
    cudnn_rnn.CudnnGRU: "outer/cudnn_gru",
    cudnn_rnn.CudnnRNNTanh: "outer/cudnn_rnn_tanh",
    cudnn_rnn.CudnnRNNRelu: "outer/cudnn_rnn_relu",
}
BIASES = tf.random_normal_initializer()


def by_layer(kind, direction, lengths):
    layer = kind(LAYERS, UNITS, direction=direction, seed=3, bias_initializer=BIASES)
    with tf.variable_scope("outer"):
        outputs, _ = layer(tf.constant(INPUTS), sequence_lengths=lengths, training=False)
    return outputs


def by_cells(kind, direction, lengths):
    def cells():
        return [CELLS[kind](UNITS) for _ in range(LAYERS)]

    given = {"dtype": tf.float32, "sequence_length": lengths, "time_major": True}
    with tf.variable_scope(SCOPES[kind]):
        if direction == "unidirectional":
            cell = MultiRNNCell(cells())
            return tf.nn.dynamic_rnn(cell, tf.constant(INPUTS), **given)[0]
        stack = rnn.stack_bidirectional_dynamic_rnn
        return stack(cells(), cells(), tf.constant(INPUTS), **given)[0]


def computed(build, arguments, path, restore):
    """What `build` computes; its variables come from the file `path`, or go there."""
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        outputs = build(*arguments)
        saver = tf.train.Saver()
        if restore:
            saver.restore(session, path)
        else:
            session.run(tf.global_variables_initializer())
            saver.save(session, path)
        return session.run(outputs)


@pytest.mark.parametrize("lengths", [pytest.param(None, marks=pytest.mark.slow), LENGTHS])
@pytest.mark.parametrize(
    "direction", [pytest.param("unidirectional", marks=pytest.mark.slow), "bidirectional"]
)
@pytest.mark.parametrize("kind", CELLS)
def test_compatible_cells_read_what_a_layer_has_saved(tmp_path, kind, direction, lengths):
    arguments, path = (kind, direction, lengths), str(tmp_path / "saved")
    expected = computed(by_layer, arguments, path, restore=False)
    found = computed(by_cells, arguments, path, restore=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    again = computed(by_layer, arguments, path, restore=True)
    np.testing.assert_allclose(again, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "keras_layer"),
    [
        (cudnn_rnn.CudnnLSTM, lambda: tf_keras.layers.LSTM(UNITS, time_major=True)),
        (cudnn_rnn.CudnnGRU, lambda: tf_keras.layers.GRU(UNITS, time_major=True, reset_after=True)),
    ],
)
def test_keras_layers_for_cudnn_compute_the_same(kind, keras_layer):
    """With cuDNN's gates, as Keras orders them: i, f, c, o; update before reset."""
    order = [0, 1, 2, 3] if kind is cudnn_rnn.CudnnLSTM else [1, 0, 2]
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        layer = kind(1, UNITS, seed=3, bias_initializer=BIASES)
        outputs, _ = layer(tf.constant(INPUTS))
        session.run(tf.global_variables_initializer())
        [(kernels, biases)] = session.run(layer.parts())
        expected = session.run(outputs[-1])
    gates = len(order)
    halves = [slice(gates), slice(gates, None)]
    weights = [np.concatenate([kernels[half][i].T for i in order], 1) for half in halves]
    sums = [np.concatenate([biases[half][i] for i in order]) for half in halves]
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        model = keras_layer()
        found = model(tf.constant(INPUTS))
        bias = np.sum(sums, 0) if kind is cudnn_rnn.CudnnLSTM else np.stack(sums)
        for variable, value in zip(model.weights, [*weights, bias], strict=True):
            session.run(variable.initializer, {variable.initializer.inputs[1]: value})
        np.testing.assert_allclose(session.run(found), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [cudnn_rnn.CudnnLSTM, cudnn_rnn.CudnnGRU])
def test_states_are_taken_and_given_and_batches_may_come_first(kind):
    """Two halves of a sequence give what the whole does; `time_major` says which axis is time."""
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        layer = kind(LAYERS, UNITS)
        x = tf.constant(INPUTS)
        whole, last = layer(x)
        first, state = layer(x[:2])
        rest, end = layer(x[2:], initial_state=state)
        turned, turned_last = layer(tf.transpose(x, [1, 0, 2]), time_major=False)
        session.run(tf.global_variables_initializer())
        pairs = [
            (tf.concat([first, rest], 0), whole),
            *zip(end, last, strict=True),
            (tf.transpose(turned, [1, 0, 2]), whole),
            *((tf.transpose(t, [1, 0, 2]), s) for t, s in zip(turned_last, last, strict=True)),
        ]
        for found, expected in session.run(pairs):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert [s.shape.as_list() for s in last] == [[LAYERS, BATCH, UNITS]] * len(last)


def test_dropout_lies_between_layers_in_training():
    with tf.Graph().as_default() as graph, session_of(graph) as session:
        layer = cudnn_rnn.CudnnRNNTanh(LAYERS, UNITS, dropout=0.5)
        x = tf.constant(INPUTS)
        outputs = [layer(x, training=training)[0] for training in (False, True, True)]
        session.run(tf.global_variables_initializer())
        still, *dropped = session.run(outputs)
    assert not np.allclose(*dropped)
    assert not np.allclose(still, dropped[0])


@pytest.mark.slow
def test_an_estimator_trains_a_layer_and_goes_on(tmp_path):
    """The file has the layer's variable, its slots, and what compatible cells have."""

    def model_fn(features, labels, mode):
        layer = cudnn_rnn.CudnnLSTM(LAYERS, UNITS, direction="bidirectional", seed=1)
        outputs, _ = layer(features)
        loss = tf.reduce_mean((tf.reduce_sum(outputs[-1], 1, keepdims=True) - labels) ** 2)
        train_op = tf.train.AdamOptimizer(0.05).minimize(loss, tf.train.get_global_step())
        return tpu.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        data = tf.data.Dataset.from_tensors((INPUTS, INPUTS[-1, :, :1]))
        return data.repeat()

    config = tpu.estimator.RunConfig(tf_random_seed=1)
    losses = []
    for parts, name in ((1, "whole"), (2, "halves")):
        estimator = tpu.estimator.Estimator(model_fn, str(tmp_path / name), config)
        for _ in range(parts):
            estimator.train(input_fn, steps=20 // parts)
        losses.append(estimator.evaluate(input_fn, steps=1)["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] < 0.1
    reader = tf.train.load_checkpoint(str(tmp_path / "halves"))
    cell = (
        "cudnn_lstm/stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/cudnn_compatible_lstm_cell"
    )
    assert reader.get_variable_to_shape_map()[f"{cell}/kernel"] == [3 * UNITS, 4 * UNITS]
    kernel = reader.get_tensor("cudnn_lstm/opaque_kernel")
    assert reader.get_tensor("cudnn_lstm/opaque_kernel/Adam").shape == kernel.shape


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"direction": "both"}, ValueError, "Invalid direction: both, expecting unidirectional or"),
        ({"input_mode": "none"}, ValueError, "Invalid input_mode: none, expect one of"),
        ({"dtype": tf.int32}, ValueError, "Only support float16, float32, float64, provided"),
        ({"input_mode": "skip_input"}, NotImplementedError, 'Set input_mode="linear_input"'),
    ],
)
def test_what_a_layer_refuses(arguments, error, match):
    with tf.Graph().as_default(), pytest.raises(error, match=match):
        cudnn_rnn.CudnnGRU(1, UNITS, **arguments)(tf.constant(INPUTS))


def test_what_inputs_and_states_a_layer_refuses():
    with tf.Graph().as_default():
        layer = cudnn_rnn.CudnnGRU(1, UNITS)
        with pytest.raises(ValueError, match="Expecting input_shape with 3 dims, got 2"):
            layer.build([2, 3])
        with pytest.raises(ValueError, match="Found `None`"):
            layer.build([2, 3, None])
        with pytest.raises(TypeError, match="Invalid initial_state type"):
            layer(tf.constant(INPUTS), initial_state=[tf.zeros([1, BATCH, UNITS])])
