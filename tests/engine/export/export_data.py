"""The data of `export_cases.py`: points with labels, and words."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

FEATURES, CLASSES = 4, 3
WORDS = ["the", "quick", "brown", "fox", "jumps"]


def points(count: int = 16) -> np.ndarray:
    return np.random.RandomState(0).normal(size=(count, FEATURES)).astype(np.float32)


def classes(count: int = 16) -> np.ndarray:
    return (points(count).sum(axis=1) > 0).astype(np.int32)


def serialized(count: int = 5) -> np.ndarray:
    return np.array(
        [
            tf.train.Example(
                features=tf.train.Features(
                    feature={
                        "x": tf.train.Feature(float_list=tf.train.FloatList(value=point)),
                        "word": tf.train.Feature(
                            bytes_list=tf.train.BytesList(value=[WORDS[i % 5].encode()])
                        ),
                    }
                )
            ).SerializeToString()
            for i, point in enumerate(points(count))
        ],
        object,
    )


def dict_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(({"x": points()}, classes()))
    return dataset.repeat().batch(8, drop_remainder=True)


def bare_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((points(), classes()))
    return dataset.repeat().batch(8, drop_remainder=True)


def word_input_fn(params):
    words = np.array([WORDS[i % 5] for i in range(16)])
    dataset = tf.data.Dataset.from_tensor_slices(({"word": words, "x": points()}, classes()))
    return dataset.repeat().batch(8, drop_remainder=True)


def sparse_input_fn(params):
    def as_sparse(features, labels):
        return {"word": tf.sparse.from_dense(features["word"][:, None])}, labels

    return word_input_fn(params).map(as_sparse)


def write_vocabulary(directory):
    path = os.path.join(directory, "words.txt")
    with open(path, "w") as file:
        file.write("\n".join(WORDS) + "\n")
    return path
