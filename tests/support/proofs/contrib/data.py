"""Proofs of `tf.contrib.data` and its deep modules."""

import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves

DATA = "tf.contrib.data"
OPS = "tf.contrib.data.python.ops"
CLASSES = (
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
)
Dataset = tf2.data.Dataset


def items(dataset):
    """All elements, as lists."""
    return [tf2.nest.map_structure(lambda x: x.tolist(), e) for e in dataset.as_numpy_iterator()]


@proves(DATA, f"{OPS}.batching")
def batches(data):
    numbers = Dataset.range(5)
    apply = numbers.apply(data.map_and_batch(lambda x: x * 2, 2, drop_remainder=True))
    assert items(apply) == [[0, 2], [4, 6]]
    assert items(numbers.apply(data.batch_and_drop_remainder(2))) == [[0, 1], [2, 3]]
    assert items(numbers.batch(2).apply(data.unbatch())) == [0, 1, 2, 3, 4]
    ragged = numbers.map(lambda x: tf2.fill([x], x))
    padded = ragged.apply(data.padded_batch_and_drop_remainder(2, [None]))
    assert items(padded) == [[[0], [1]], [[2, 2, 0], [3, 3, 3]]]
    shaped = ragged.apply(data.assert_element_shape(tf2.TensorShape([None])))
    assert len(items(shaped)) == 5
    with pytest.raises(tf.errors.InvalidArgumentError):
        items(ragged.apply(data.assert_element_shape(tf2.TensorShape([2]))))


@proves(*(f"{DATA}.{name}" for name in CLASSES), f"{OPS}.dataset_ops")
def classes(value):
    known = tf.data
    if isinstance(value, type):
        assert value is getattr(known, value.__name__.removesuffix("V1"))
    else:
        assert [getattr(value, name) for name in CLASSES] == [getattr(known, n) for n in CLASSES]


@proves(f"{OPS}.interleave_ops")
def interleaves(data):
    def repeated(x):
        return Dataset.from_tensors(x).repeat(2)

    numbers = Dataset.range(2)
    assert items(numbers.apply(data.parallel_interleave(repeated, 2))) == [0, 1, 0, 1]
    assert sorted(items(numbers.apply(data.sloppy_interleave(repeated, 2)))) == [0, 0, 1, 1]
    assert items(data.choose_from_datasets([numbers], Dataset.range(1))) == [0]


@proves(f"{OPS}.shuffle_ops")
def shuffles(data):
    shuffled = items(Dataset.range(4).apply(data.shuffle_and_repeat(4, 2, seed=1)))
    assert sorted(shuffled[:4]) == sorted(shuffled[4:]) == [0, 1, 2, 3]


@proves(f"{OPS}.counter")
def counts(data):
    assert items(data.Counter(3, 2).take(2)) == [3, 5]


@proves(f"{OPS}.enumerate_ops")
def enumerates(data):
    assert items(Dataset.range(1).apply(data.enumerate_dataset(7))) == [(7, 0)]


@proves(f"{OPS}.error_ops")
def ignores(data):
    checked = Dataset.range(3).map(lambda x: tf2.debugging.check_numerics(1 / (x - 1), "no"))
    assert len(items(checked.apply(data.ignore_errors()))) == 2


@proves(f"{OPS}.get_single_element")
def reduces(data):
    assert int(data.get_single_element(Dataset.range(1))) == 0
    reducer = data.Reducer(lambda _: tf2.constant(0, tf2.int64), lambda a, b: a + b, lambda a: a)
    assert int(data.reduce_dataset(Dataset.range(4), reducer)) == 6


@proves(f"{OPS}.grouping")
def groups(data):
    grouped = Dataset.range(4).apply(
        data.group_by_window(lambda x: x % 2, lambda _, window: window.batch(4), 2)
    )
    assert items(grouped) == [[0, 2], [1, 3]]
    words = Dataset.from_tensor_slices([1, 1, 3]).map(lambda n: tf2.ones([n]))
    bucketed = words.apply(data.bucket_by_sequence_length(lambda x: tf2.shape(x)[0], [2], [2, 1]))
    assert [len(batch) for batch in items(bucketed)] == [2, 1]


@proves(f"{OPS}.iterator_ops")
def saves_iterators(data):
    def build():
        iterator = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
        assert data.make_saveable_from_iterator(iterator).name
        return iterator.get_next()

    assert evaluate(build) == 0


def example():
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    return tf.train.Example(features=tf.train.Features(feature={"x": feature}))


SPEC = {"x": tf.FixedLenFeature([], tf.int64)}


@proves(f"{OPS}.parsing_ops")
def parses(data):
    records = Dataset.from_tensors([example().SerializeToString()])
    assert items(records.apply(data.parse_example_dataset(SPEC))) == [{"x": [7]}]


@proves(f"{OPS}.prefetching_ops")
def prefetches(data):
    assert items(Dataset.range(2).apply(data.prefetch_to_device("/cpu:0"))) == [0, 1]


@proves(f"{OPS}.random_ops")
def draws(data):
    assert items(data.RandomDataset(seed=1).take(2)) == items(data.RandomDataset(seed=1).take(2))


@proves(f"{OPS}.readers")
def reads(data, tmp_path):
    path = str(tmp_path / "file.csv")
    with open(path, "w") as file:
        file.write("1\n2\n")
    assert items(data.CsvDataset(path, [tf.int32])) == [(1,), (2,)]
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(example().SerializeToString())
    read = evaluate(lambda: data.read_batch_features(path, 1, SPEC, num_epochs=1))
    assert read["x"].tolist() == [7]


@proves(f"{OPS}.writers")
def writes(data, tmp_path):
    path = str(tmp_path / "records")
    evaluate(lambda: data.TFRecordWriter(path).write(tf.data.Dataset.from_tensors("record")))
    assert list(tf.python_io.tf_record_iterator(path)) == [b"record"]


@proves(f"{OPS}.resampling")
def resamples(data):
    classes = Dataset.from_tensor_slices([0, 1] * 50)
    kept = classes.apply(data.rejection_resample(lambda x: x, [1.0, 0.0], [0.5, 0.5], seed=1))
    assert {label for label, _ in items(kept)} == {0}


@proves(f"{OPS}.scan_ops")
def scans(data):
    sums = Dataset.range(4).apply(
        data.scan(tf2.constant(0, tf2.int64), lambda total, x: (total + x, total + x))
    )
    assert items(sums) == [0, 1, 3, 6]


@proves(f"{OPS}.sliding")
def slides(data):
    windows = Dataset.range(5).apply(data.sliding_window_batch(3, window_shift=2))
    assert items(windows) == [[0, 1, 2], [2, 3, 4]]
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(3)))
    assert items(pairs.apply(data.sliding_window_batch(2))) == [
        ([0, 1], [0, 1]),
        ([1, 2], [1, 2]),
    ]
    with pytest.raises(ValueError, match="both"):
        data.sliding_window_batch(3, 1, 1)


@proves(f"{OPS}.unique")
def makes_unique(data):
    numbers = Dataset.from_tensor_slices([1, 1, 2])
    assert items(numbers.apply(data.unique())) == [1, 2]
