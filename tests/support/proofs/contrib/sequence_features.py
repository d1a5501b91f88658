"""Proofs of `tf.contrib.feature_column.sequence_input_layer`."""

import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves

CONTRIB = "tf.contrib"
SEQUENCES = f"{CONTRIB}.feature_column"


@proves(f"{SEQUENCES}.sequence_input_layer")
def joins_sequences(layer):
    column = tf.feature_column.sequence_categorical_column_with_identity("words", 3)

    def build():
        ids = tf.constant([2, 0, 1], tf.int64)
        words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ids, [2, 2])
        return layer({"words": words}, [tf.feature_column.indicator_column(column)])

    values, lengths = evaluate(build)
    assert values.tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]]]
    assert lengths.tolist() == [2, 1]
