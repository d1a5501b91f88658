"""Cells that wrap a cell."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("cell_wrappers")


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
    ],
)
def test_wrong_arguments(make, error, words):
    with tf.Graph().as_default(), pytest.raises(error, match=words):
        make()
