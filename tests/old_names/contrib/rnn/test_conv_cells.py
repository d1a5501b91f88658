"""Convolutional cells."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from . import cells_probe
from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("conv_cells")


def test_a_convolution_as_published():
    """https://arxiv.org/abs/1506.04214 without peepholes, in NumPy."""
    make, inputs = cells_probe.cases()["conv1"]
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        outputs, _ = cells_probe.sequence(tf, make(rnn), tf.constant(inputs), dynamic=True)
        session.run(tf.global_variables_initializer())
        kernel, bias, found = session.run([*tf.global_variables(), outputs])
    cell = hidden = np.zeros([*inputs.shape[1:3], 3])
    for given, output in zip(inputs, found, strict=True):
        padded = np.pad(np.concatenate([given, hidden], -1), [(0, 0), (1, 1), (0, 0)])
        gates = sum(padded[:, i : i + 4] @ kernel[i] for i in range(3)) + bias
        write, new, keep, show = np.split(gates, 4, axis=-1)
        cell = sigmoid(keep + 1) * cell + sigmoid(write) * np.tanh(new)
        hidden = sigmoid(show) * np.tanh(cell)
        np.testing.assert_allclose(output, hidden, rtol=1e-4, atol=1e-6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_wrong_arguments():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Invalid input_shape"):
        rnn.ConvLSTMCell(2, [4, 2], 3, [2])
