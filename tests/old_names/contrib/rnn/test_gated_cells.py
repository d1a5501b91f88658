"""Cells with gates of their own."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import rnn

from .recorded_cells import compared

test_cells_are_those_of_the_original = compared("gated_cells")


def test_the_depth_of_inputs_must_be_known():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Could not infer input size"):
        rnn.UGRNNCell(4)(tf.placeholder(tf.float32, [2, None]), tf.ones([2, 4]))
