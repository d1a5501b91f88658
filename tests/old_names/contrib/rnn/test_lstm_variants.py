"""Variants of the LSTM."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("lstm_variants")


def test_wrong_arguments():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be divisible"):
        rnn.GLSTMCell(4, number_of_groups=3)
