"""Columns and batches that canned models learn from."""

import numpy as np
import tensorflow as tf

X = np.linspace(-1.0, 1.0, 8, dtype=np.float32)

LABELS = (X > 0).astype(np.int64)

COLUMN = tf.feature_column.numeric_column("x")

WORD = tf.feature_column.categorical_column_with_vocabulary_list("word", ["cold", "warm"])

WORDS = np.where(X > 0, "warm", "cold")


def input_fn(labels=LABELS):
    data = tf.data.Dataset.from_tensor_slices(({"x": X, "word": WORDS}, labels))
    return data.batch(4).repeat()
