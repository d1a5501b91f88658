"""`tf.contrib.learn.datasets`, and `input_data` of `tf.examples`: MNIST and CSV files."""

from __future__ import annotations

import csv
import functools
import gzip
import operator
import os
import tempfile
import urllib.error
import urllib.request
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import get_seed, logging

from tpu_estimator_compat.engine.files import removal, user_files

DEFAULT_SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_IMAGES, _LABELS = 2051, 2049  # magic numbers of MNIST's files


class Dataset(NamedTuple):
    """A table: `data` [examples, features], and `target` [examples]."""

    data: Any
    target: Any


class Datasets(NamedTuple):
    """A split data set; each part is a `DataSet` or a `Dataset`."""

    train: Any
    validation: Any
    test: Any


class DataSet:
    """Images, uint8 [examples, rows, columns, 1], and their labels, in batches.

    `next_batch(fake_data=True)` gives images of ones and labels 0, one-hot if `one_hot`. Pixels
    become float32 in [0, 1], or stay uint8, by `dtype`. With `reshape`, images become [examples,
    rows * columns]. The constructor seeds NumPy's global generator: with `seed`, or with the
    graph's seed.
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = tf.float32,
        reshape: bool = True,
        seed: int | None = None,
    ):
        of_graph, of_op = get_seed(seed)
        np.random.seed(of_graph if seed is None else of_op)
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._one_hot = one_hot
        self._num_examples = 10000 if fake_data else len(images)
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(
                    f"images.shape: {images.shape} labels.shape: {labels.shape}: their first "
                    "dimensions must be the same."
                )
            if reshape:
                if images.shape[3] != 1:
                    raise ValueError(f"Images of one channel can be reshaped, got {images.shape}.")
                images = images.reshape(len(images), images.shape[1] * images.shape[2])
            if dtype == tf.float32:
                images = images.astype(np.float32) * np.float32(1.0 / 255.0)
        self._images, self._labels = images, labels
        self._epochs_completed = 0
        self._position = 0

    images = property(operator.attrgetter("_images"), doc="In the order of the current epoch.")
    labels = property(operator.attrgetter("_labels"))
    num_examples = property(operator.attrgetter("_num_examples"))
    epochs_completed = property(operator.attrgetter("_epochs_completed"))

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """The next images and labels; a batch may span two epochs."""
        if fake_data:
            label = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * 784] * batch_size, [label] * batch_size
        if self._epochs_completed == 0 and self._position == 0 and shuffle:
            self._shuffle()
        start, end = self._position, self._position + batch_size
        if end <= self._num_examples:
            self._position = end
            return self._images[start:end], self._labels[start:end]
        self._epochs_completed += 1
        images, labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._position = batch_size - len(images)
        return (
            np.concatenate((images, self._images[: self._position])),
            np.concatenate((labels, self._labels[: self._position])),
        )

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)  # the global generator, as in the original: scripts seed it
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = tf.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = DEFAULT_SOURCE_URL,
) -> Datasets:
    """MNIST from its four files; missing files are downloaded.

    Labels are uint8 [examples]; one hot, float64 [examples, 10]. The first `validation_size`
    training images become the validation part. Other arguments are those of `DataSet`.
    """
    if fake_data:
        nothing = np.zeros([0])

        def fake() -> DataSet:
            return DataSet(nothing, nothing, True, one_hot, dtype, seed=seed)

        return Datasets(fake(), fake(), fake())

    images, labels, test_images, test_labels = _arrays_of(train_dir, one_hot, source_url)
    size = validation_size
    if not 0 <= size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {size}."
        )
    parts = (
        (images[size:], labels[size:]),
        (images[:size], labels[:size]),
        (test_images, test_labels),
    )
    return Datasets(*(DataSet(*p, dtype=dtype, reshape=reshape, seed=seed) for p in parts))


def _arrays_of(train_dir: str, one_hot: bool, source_url: str) -> list[np.ndarray]:
    found = []
    for part in ("train", "t10k"):
        for kind, extract in (
            ("images-idx3", extract_images),
            ("labels-idx1", functools.partial(extract_labels, one_hot=one_hot)),
        ):
            name = f"{part}-{kind}-ubyte.gz"
            path = maybe_download(name, train_dir, (source_url or DEFAULT_SOURCE_URL) + name)
            with tf.io.gfile.GFile(path, "rb") as file:
                found.append(extract(file))
    return found


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """MNIST with the defaults of `read_data_sets`."""
    return read_data_sets(train_dir)


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Datasets:
    """The data set "mnist"; ValueError for any other name."""
    del size, test_with_fake_data
    if name != "mnist":
        raise ValueError(
            f'Name of dataset is not found: {name}. "mnist" is provided; take the package '
            "tensorflow-datasets for others."
        )
    return load_mnist()


def extract_images(f: BinaryIO) -> np.ndarray:
    """The images of a gzipped MNIST file, uint8 [examples, rows, columns, 1]."""
    with gzip.GzipFile(fileobj=f) as stream:
        _check_magic(stream, _IMAGES, f)
        count, rows, columns = _read32(stream, 3)
        data = np.frombuffer(stream.read(rows * columns * count), np.uint8)
        return data.reshape(count, rows, columns, 1)


def extract_labels(f: BinaryIO, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """The labels of a gzipped MNIST file, uint8 [examples], or one hot."""
    with gzip.GzipFile(fileobj=f) as stream:
        _check_magic(stream, _LABELS, f)
        [count] = _read32(stream, 1)
        labels = np.frombuffer(stream.read(count), np.uint8)
    return dense_to_one_hot(labels, num_classes) if one_hot else labels


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """One-hot float64 [examples, num_classes] of class numbers [examples]."""
    return np.eye(num_classes)[labels_dense.ravel()]


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file in `work_directory`; downloads it if it is missing.

    Raises:
      urllib.error.URLError: the server cannot be reached, lacks the file, or sends an empty file, a
        page of HTML, or a damaged `.gz` file, and none is left; or such a file was there, and is.
      urllib.error.ContentTooShortError: the download was cut short; no file is left.
    """
    tf.io.gfile.makedirs(work_directory)
    path = os.path.join(work_directory, filename)
    if not tf.io.gfile.exists(path):
        part = f"{path}.part-{user_files.token()}"
        with tempfile.NamedTemporaryFile() as copy:
            urllib.request.urlretrieve(source_url, copy.name)  # raises if the download is cut short
            _check(copy.name, filename, f"It is what {source_url} sent.")
            try:
                tf.io.gfile.copy(copy.name, part)
                user_files.sync([part])
                tf.io.gfile.rename(part, path, overwrite=True)  # atomic
            except BaseException:
                removal.remove(part, "unfinished")
                raise
        size = tf.io.gfile.stat(path).length
        logging.info("Successfully downloaded %s %d bytes.", filename, size)
    else:
        _check(path, filename, "Remove it, so that it is downloaded again.")
    return path


def _check(path: str, name: str, advice: str) -> None:
    """Raises URLError unless a file is the whole file `name`, as far as its content tells."""
    problem = ""
    with tf.io.gfile.GFile(path, "rb") as file:
        start = file.read(512).lstrip().lower()
        file.seek(0)
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                while name.endswith(".gz") and stream.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            problem = str(error)
    if start.startswith((b"<!doctype html", b"<html")) and not name.endswith((".html", ".htm")):
        problem = "it is a page of HTML"
    if problem or not start:
        raise urllib.error.URLError(f"{path} is not {name}: {problem or 'it is empty'}. {advice}")


def load_csv_with_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table from a CSV file whose first line has the numbers of examples and features."""
    with tf.io.gfile.GFile(filename) as file:
        rows = list(csv.reader(file))
    count, features = int(rows[0][0]), int(rows[0][1])
    data, target = _columns(rows[1:], target_dtype, features_dtype, target_column)
    return Dataset(data.reshape(count, features), target)


def load_csv_without_header(
    filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1
) -> Dataset:
    """A table from a CSV file that has a line for each example."""
    with tf.io.gfile.GFile(filename) as file:
        rows = list(csv.reader(file))
    return Dataset(*_columns(rows, target_dtype, features_dtype, target_column))


def _columns(
    rows: list[list[str]], target_dtype: Any, features_dtype: Any, target_column: int
) -> tuple[np.ndarray, np.ndarray]:
    targets = [row.pop(target_column) for row in rows]
    data = np.array([np.asarray(row, dtype=features_dtype) for row in rows])
    return data, np.array(targets, dtype=target_dtype)


def _read32(stream: gzip.GzipFile, count: int) -> list[int]:
    return [int(value) for value in np.frombuffer(stream.read(4 * count), ">u4")]


def _check_magic(stream: gzip.GzipFile, expected: int, f: BinaryIO) -> None:
    [magic] = _read32(stream, 1)
    if magic != expected:
        name = getattr(f, "name", f)
        raise ValueError(f"Invalid magic number {magic} in MNIST file {name}: expected {expected}")


__all__ = [
    "DEFAULT_SOURCE_URL",
    "DataSet",
    "Dataset",
    "Datasets",
    "dense_to_one_hot",
    "extract_images",
    "extract_labels",
    "load_csv_with_header",
    "load_csv_without_header",
    "load_dataset",
    "load_mnist",
    "maybe_download",
    "read_data_sets",
]
