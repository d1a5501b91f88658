"""Proofs of `tf.contrib.data`: what `tf.data.experimental` has, and what is written here."""

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves
from tpu_estimator_compat.old_names.contrib import data as module

DATA = "tf.contrib.data"
Dataset = tf2.data.Dataset


def items(dataset):
    return [tf2.nest.map_structure(lambda x: x.tolist(), e) for e in dataset.as_numpy_iterator()]


OWN = (
    "assert_element_shape batch_and_drop_remainder padded_batch_and_drop_remainder "
    "read_batch_features reduce_dataset sliding_window_batch sloppy_interleave"
)


@proves(DATA)
def has_what_became_experimental(data):
    for name in set(module.__all__) - set(OWN.split()):
        assert getattr(data, name) is getattr(tf.data.experimental, name)


@proves(DATA)
def batches(data):
    numbers = Dataset.range(5)
    assert items(numbers.apply(data.batch_and_drop_remainder(2))) == [[0, 1], [2, 3]]
    ragged = numbers.map(lambda x: tf2.fill([x], x))
    padded = ragged.apply(data.padded_batch_and_drop_remainder(2, [None]))
    assert items(padded) == [[[0], [1]], [[2, 2, 0], [3, 3, 3]]]
    shaped = ragged.apply(data.assert_element_shape(tf2.TensorShape([None])))
    assert len(items(shaped)) == 5
    with pytest.raises(tf.errors.InvalidArgumentError):
        items(ragged.apply(data.assert_element_shape(tf2.TensorShape([2]))))


@proves(DATA)
def interleaves_and_reduces(data):
    repeated = data.sloppy_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2)
    assert sorted(items(Dataset.range(2).apply(repeated))) == [0, 0, 1, 1]
    reducer = data.Reducer(lambda _: tf2.constant(0, tf2.int64), lambda a, b: a + b, lambda a: a)
    assert int(data.reduce_dataset(Dataset.range(4), reducer)) == 6


@proves(DATA)
def reads(data, tmp_path):
    path = str(tmp_path / "file")
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    with tf.io.TFRecordWriter(path) as writer:
        features = tf.train.Features(feature={"x": feature})
        writer.write(tf.train.Example(features=features).SerializeToString())
    spec = {"x": tf.FixedLenFeature([], tf.int64)}
    read = evaluate(lambda: data.read_batch_features(path, 1, spec, num_epochs=1))
    assert read["x"].tolist() == [7]


@proves(DATA)
def slides(data):
    windows = Dataset.range(5).apply(data.sliding_window_batch(3, window_shift=2))
    assert items(windows) == [[0, 1, 2], [2, 3, 4]]
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(3)))
    assert items(pairs.apply(data.sliding_window_batch(2))) == [([0, 1], [0, 1]), ([1, 2], [1, 2])]
    with pytest.raises(ValueError, match="both"):
        data.sliding_window_batch(3, 1, 1)
