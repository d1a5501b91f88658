"""What `dynamic_decode` refuses; what it computes is tested with each decoder."""

import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import seq2seq

from .small_decoder import Cell


def test_refuses_what_is_no_decoder() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="Expected decoder to be type Decoder"):
            seq2seq.dynamic_decode(Cell())
