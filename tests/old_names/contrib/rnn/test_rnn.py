"""Cells of `tf.contrib.rnn`, against what TensorFlow 1.15.5 says of them, on Python 3.7.

`cells_probe.py` recorded that in `cells_of_1_15.json`: variables, and what cells compute.
"""

import json
import pathlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from . import cells_probe

ORIGINAL = json.loads(pathlib.Path(__file__).with_name("cells_of_1_15.json").read_text())
NUMBERS = ("outputs", "sums", "gradients")


@pytest.mark.parametrize("case", sorted(ORIGINAL))
def test_cells_are_those_of_the_original(case):
    name, _, mode = case.rpartition(", ")
    make, inputs = cells_probe.cases()[name]
    found = cells_probe.run(tf, rnn, make, inputs, dynamic=mode == "loop")
    for key, expected in ORIGINAL[case].items():
        if key in NUMBERS:
            np.testing.assert_allclose(found[key], expected, rtol=1e-5, atol=1e-6, err_msg=key)
        else:
            assert json.loads(json.dumps(found[key])) == expected, key


def test_all_cases_are_recorded():
    cases = cells_probe.cases()
    assert {case.rpartition(", ")[0] for case in ORIGINAL} == set(cases)
    assert len(ORIGINAL) == sum(len(cells_probe.modes(name)) for name in cases)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


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


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rnn.AttentionCellWrapper(3, 4), TypeError, "not an RNNCell"),
        (lambda: rnn.AttentionCellWrapper(rnn.GRUCell(4), 0), ValueError, "greater than zero"),
        (
            lambda: rnn.AttentionCellWrapper(rnn.LSTMCell(4), 2, state_is_tuple=False),
            ValueError,
            "the flag state_is_tuple is not set",
        ),
        (lambda: rnn.OutputProjectionWrapper(rnn.GRUCell(4), 0), ValueError, "must be > 0"),
        (lambda: rnn.EmbeddingWrapper(rnn.GRUCell(4), 0, 2), ValueError, "must be > 0"),
        (lambda: rnn.ConvLSTMCell(2, [4, 2], 3, [2]), ValueError, "Invalid input_shape"),
        (lambda: rnn.GLSTMCell(4, number_of_groups=3), ValueError, "must be divisible"),
        (
            lambda: rnn.UGRNNCell(4)(tf.placeholder(tf.float32, [2, None]), tf.ones([2, 4])),
            ValueError,
            "Could not infer input size",
        ),
    ],
)
def test_wrong_arguments(make, error, words):
    with tf.Graph().as_default(), pytest.raises(error, match=words):
        make()
