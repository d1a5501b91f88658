"""Cells with gates of their own."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("gated_cells")


def test_names_draw_anew_for_each_variable():
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        rnn.CFNCell(2)(tf.ones([1, 4]), tf.ones([1, 2]))
        session.run(tf.global_variables_initializer())
        kernel, recurrent, bias = session.run(tf.global_variables())
    assert not np.isin(recurrent, kernel).any()
    assert bias.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: rnn.IntersectionRNNCell(4)(tf.ones([2, 3]), tf.ones([2, 4])),
            ValueError,
            "Must have input size == output size",
        ),
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
