"""Arrays in memory as input: `x` and `y` of `fit`, in the order in which they were fed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import inputs

_SEED = 42
_NUMBERS = frozenset("biuf")  # kinds of dtypes


def input_fn(
    x: Any, y: Any = None, batch_size: int | None = None, shuffle: bool = False, epochs: Any = 1
) -> Callable[[], Any]:
    """An input function of arrays, or of iterators of examples.

    Args:
      x: an array or a data frame [examples, ...], a dict of such, or an iterator.
      y: labels, likewise; None for none.
      batch_size: examples in a batch; None for all of them, of an iterator 1.
      shuffle: whether in another order in each epoch: the same orders for each such function.
      epochs: the number of epochs; None for ever. An iterator is taken once.

    Raises:
      ValueError: only one of the two is an iterator, a batch size below 1, or a data frame holds
        what is no number.
    """
    if batch_size is not None and batch_size <= 0:
        raise ValueError(f"Invalid batch_size {batch_size}.")
    if hasattr(x, "__next__"):
        return _of_iterators(x, y, batch_size or 1)
    x, y = _arrays(extract_pandas_data(x)), _arrays(extract_pandas_labels(y))
    x = tf.nest.map_structure(lambda array: array[:, None] if array.ndim == 1 else array, x)
    data = (x,) if y is None else (x, tf.nest.map_structure(_without_column, y))
    examples = len(tf.nest.flatten(x)[0])
    size = batch_size or examples

    def batches() -> Iterator[list[np.ndarray]]:
        random = np.random.RandomState(_SEED)
        for _ in itertools.count() if epochs is None else range(epochs):
            order = random.permutation(examples) if shuffle else np.arange(examples)
            for start in range(0, examples, size):
                chosen = order[start : start + size]
                yield [array[chosen] for array in tf.nest.flatten(data)]

    return _fed(batches, data)


def _of_iterators(x: Iterator[Any], y: Iterator[Any] | None, size: int) -> Callable[[], Any]:
    if y is not None and not hasattr(y, "__next__"):
        raise ValueError("Both x and y should be iterators for streaming learning to work.")
    examples = zip(*([x] if y is None else [x, y]), strict=False)
    first = next(examples)
    rest = itertools.chain([first], examples)

    def batches() -> Iterator[list[np.ndarray]]:
        while chunk := [tf.nest.flatten(each) for each in itertools.islice(rest, size)]:
            yield [np.stack(arrays) for arrays in zip(*chunk, strict=True)]

    return _fed(batches, tf.nest.map_structure(lambda each: np.asarray(each)[None], first))


def _fed(batches: Callable[[], Iterator[list[np.ndarray]]], like: tuple) -> Callable[[], Any]:
    """An input function of batches that Python makes.

    Args:
      batches: makes the flat arrays of batches.
      like: features, or features and labels, like those of a batch.
    """
    flat = tf.nest.flatten(like)
    if any(array.dtype == np.float64 for array in flat):
        tf.logging.warning("float64 is not supported by many models, consider casting to float32.")

    def call() -> Any:
        iterator = batches()
        # No dataset of a generator: its end waits for Python, from whatever thread lets go of it.
        tensors = tf.py_func(lambda: next(iterator), [], [array.dtype for array in flat])
        for tensor, array in zip(tensors, flat, strict=True):
            tensor.set_shape([None, *array.shape[1:]])
        inputs.note_queued(tf.get_default_graph())
        features, *labels = tf.nest.pack_sequence_as(like, tensors)
        return features, labels[0] if labels else None

    return call


def _arrays(data: Any) -> Any:
    if data is None or isinstance(data, np.ndarray):
        return data
    if isinstance(data, dict):
        return {name: _arrays(value) for name, value in data.items()}
    return np.asarray(data)


def _without_column(labels: np.ndarray | None) -> np.ndarray | None:
    column = labels is not None and labels.ndim > 1 and labels.shape[1] == 1
    return labels[:, 0] if labels is not None and column else labels


def extract_pandas_data(data: Any) -> Any:
    """The values of a data frame as floats; all else as it is.

    Raises:
      ValueError: it holds what is no number.
    """
    if not _is_pandas(data, "DataFrame"):
        return data
    wrong = [name for name in data if data[name].dtype.kind not in _NUMBERS]
    if wrong:
        found = ", ".join(f"'{name}' type='{data[name].dtype.name}" for name in wrong)
        raise ValueError(
            f"Data types for extracting pandas data must be int, float, or bool. Found: {found}"
        )
    return data.to_numpy().astype("float")


def extract_pandas_matrix(data: Any) -> Any:
    """The values of a data frame; all else as it is."""
    return data.to_numpy() if _is_pandas(data, "DataFrame") else data


def extract_pandas_labels(labels: Any) -> Any:
    """The values of a data frame's only column, or of a series; all else as it is.

    Raises:
      ValueError: several columns, or what is no number.
    """
    if not _is_pandas(labels, "DataFrame"):
        return labels
    if len(labels.columns) > 1:
        raise ValueError("Only one column for labels is allowed.")
    if any(labels[name].dtype.kind not in _NUMBERS for name in labels):
        raise ValueError("Data types for labels must be int, float, or bool.")
    return labels.to_numpy()


def _is_pandas(data: Any, name: str) -> bool:
    """Without pandas, which needs not be installed."""
    cls = type(data)
    return cls.__name__ == name and cls.__module__.partition(".")[0] == "pandas"


def chosen(
    x: Any,
    y: Any,
    given: Callable[[], Any] | None,
    batch_size: int | None,
    shuffle: bool = False,
    epochs: int | None = 1,
    feed_fn: Any = None,
) -> Callable[[], Any]:
    """The input function that is given, or one of the arrays.

    Raises:
      ValueError: both, or none, or tensors.
    """
    if given is not None:
        if x is not None or y is not None:
            raise ValueError("Can not provide both input_fn and x or y.")
        if batch_size is not None:
            raise ValueError("Can not provide both input_fn and batch_size.")
        return given
    if x is None:
        raise ValueError("Either x or input_fn must be provided.")
    if tf.is_tensor(x) or tf.is_tensor(y):
        raise ValueError("Inputs cannot be tensors. Please provide input_fn.")
    if feed_fn is not None:
        raise ValueError("Can not provide both feed_fn and x or y.")
    return input_fn(x, y, batch_size, shuffle, epochs)


def examples(batches: Iterator[Any]) -> Iterator[Any]:
    """The examples of batches, one by one."""
    for batch in batches:
        if not isinstance(batch, dict):
            yield from batch
            continue
        for i in range(len(next(iter(batch.values())))):
            yield {name: values[i] for name, values in batch.items()}


def joined(batches: list[Any]) -> Any:
    """All batches as one."""
    if not isinstance(batches[0], dict):
        return np.concatenate(batches)
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


__all__ = ["extract_pandas_data", "extract_pandas_labels", "extract_pandas_matrix", "input_fn"]
