"""The proof of `tf.layers`; what it computes is tested in `tests/layers`."""

import tensorflow.compat.v1 as tf

from support.proofs import proves, variables_of


@proves("tf.layers")
def has_dense(layers):
    assert variables_of(lambda: layers.dense(tf.ones([2, 3]), 4)) == ["dense/kernel", "dense/bias"]
