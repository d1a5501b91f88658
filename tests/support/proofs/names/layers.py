"""Proofs of layers and cells of Keras 2 in TensorFlow's inside."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.src.layers.rnn import legacy_cells

from support.proofs import below, evaluate, graph, proves, variables_of


@proves("tf.python.layers.base.InputSpec")
def specifies_input(spec):
    class OfRank2(tf_keras.layers.Layer):
        input_spec = spec(ndim=2)

    with graph():
        OfRank2()(tf.ones([2, 2]))
        with pytest.raises(ValueError, match="expected ndim=2"):
            OfRank2()(tf.ones([2]))


IMPLEMENTATIONS = ("tf.python.ops.rnn_cell", "tf.python.ops.rnn_cell_impl")
WRAPPERS = "DeviceWrapper DropoutWrapper ResidualWrapper"


@proves(*(name for module in IMPLEMENTATIONS for name in below(module, WRAPPERS)))
def wraps_a_cell(wrapper):
    def build():
        cell = legacy_cells.GRUCell(3)
        wrapped = wrapper(cell, *(["/cpu:0"] if wrapper.__name__ == "DeviceWrapper" else []))
        return wrapped(tf.ones([2, 3]), tf.zeros([2, 3]))[0]

    assert evaluate(build).shape == (2, 3)


@proves(*(f"{module}.assert_like_rnncell" for module in IMPLEMENTATIONS))
def knows_a_cell(check):
    check("cell", legacy_cells.GRUCell(3))
    with pytest.raises(TypeError, match="not an RNNCell"):
        check("cell", 3)


OPS = "tf.python.ops"
LAYERS = "tf.python.layers"


@proves(f"{LAYERS}.base")
def is_the_class_of_layers(base):
    class Doubled(base.Layer):
        def call(self, inputs):
            return inputs * 2

    assert evaluate(lambda: Doubled()(tf.constant(2.0))) == 4.0


@proves(f"{LAYERS}.core", "tf.layers", f"{LAYERS}.layers")
def has_dense(core):
    x = tf.ones([2, 3])
    assert variables_of(lambda: core.dense(tf.ones([2, 3]), 4)) == ["dense/kernel", "dense/bias"]
    assert x.shape == (2, 3)


@proves(f"{LAYERS}.convolutional")
def has_conv2d(convolutional):
    names = variables_of(lambda: convolutional.conv2d(tf.ones([1, 4, 4, 1]), 2, 3))
    assert names == ["conv2d/kernel", "conv2d/bias"]
    assert convolutional.Convolution2D is convolutional.Conv2D


@proves(f"{LAYERS}.pooling")
def pools(pooling):
    x = np.arange(4.0, dtype=np.float32).reshape([1, 2, 2, 1])
    assert evaluate(lambda: pooling.max_pooling2d(tf.constant(x), 2, 2)).tolist() == [[[[3.0]]]]


@proves(f"{LAYERS}.normalization")
def normalizes(normalization):
    class Shifted(normalization.BatchNormalization):
        """As cross-replica batch norms of TPU code do: the moments are overridden."""

        def _moments(self, inputs, reduction_axes, keep_dims, **kwargs):
            mean, variance = super()._moments(inputs, reduction_axes, keep_dims, **kwargs)
            return mean + 1.0, variance

    def build():
        x = tf.constant([[1.0], [3.0]])
        result = Shifted(fused=False, epsilon=0.0)(x, training=True)
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
        return result

    # The mean is 2, and 1 was added to it; the deviation is 1.
    np.testing.assert_allclose(evaluate(build), [[-2.0], [0.0]], rtol=1e-6)


@proves("tf.nn.rnn_cell", f"{OPS}.rnn_cell", f"{OPS}.rnn_cell_impl")
def has_cells(rnn_cell):
    def build():
        cell = rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(2), rnn_cell.GRUCell(3)])
        return tf.nn.dynamic_rnn(cell, tf.ones([1, 4, 5]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (1, 4, 3)
    assert "rnn/multi_rnn_cell/cell_0/basic_lstm_cell/kernel" in variables_of(build)


@proves("tf.keras", "tf.contrib.keras", "tf.contrib.keras.api.keras")
def is_keras_2(keras):
    assert keras.layers.Dense.__module__.startswith("tf_keras.")
    assert variables_of(lambda: keras.layers.Dense(2)(tf.ones([1, 3]))) == [
        "dense/kernel",
        "dense/bias",
    ]


COLUMNS = "tf.python.feature_column"


@proves(*below(COLUMNS, "dense_features dense_features_v2"))
def has_dense_features(module):
    reads_columns(module.DenseFeatures)


@proves(*below(COLUMNS, "feature_column_lib.DenseFeatures feature_column_v2.DenseFeatures"))
def reads_columns(dense_features):
    layer = dense_features([tf.feature_column.numeric_column("x", shape=[2])])
    assert evaluate(lambda: layer({"x": tf.ones([3, 2])})).tolist() == [[1.0, 1.0]] * 3


@proves(
    *below(COLUMNS, "feature_column_lib.SequenceFeatures sequence_feature_column.SequenceFeatures")
)
def reads_sequences(sequence_features):
    layer = sequence_features([tf.feature_column.sequence_numeric_column("x")])
    x = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2])
    values, lengths = evaluate(lambda: layer({"x": tf.SparseTensor.from_value(x)}))
    assert values.tolist() == [[[1.0], [2.0]], [[3.0], [0.0]]]
    assert lengths.tolist() == [2, 1]
