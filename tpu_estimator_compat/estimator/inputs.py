"""`tf.estimator.inputs`: input functions for arrays and data frames, built on `tf.data`.

Batches are those of the original, including those that span two epochs. The order of shuffled
examples differs, as it differed between runs of the original. There are no queues, and no summaries
of their sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

InputFn = Callable[[], Any]


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> InputFn:
    """An input function for arrays in memory.

    Args:
      x: an array [examples, ...], or a dict of such arrays.
      y: labels in the same form; None for none.
      batch_size: examples per batch.
      num_epochs: the number of epochs; None repeats without end.
      shuffle: required; False for evaluation and prediction.
      queue_capacity: size of the shuffle buffer, in examples.
      num_threads: ignored; `tf.data` chooses its own parallelism and keeps the order.

    Returns:
      A function without arguments that returns features, or (features, labels): in a graph, as in
      an input_fn, tensors with new values in every step; with eager execution, a dataset. The last
      batch of a finite number of epochs may be smaller. The function raises ValueError if arrays
      are missing, differ in length, or share a key between `x` and `y`, and TypeError if `x` is
      neither an array nor a dict.

    Raises:
      ValueError: `shuffle` is not a bool.
    """
    del num_threads
    _check_shuffle(shuffle)

    def input_fn() -> Any:
        _check_arrays(x, y)
        data = x if y is None else (x, y)
        return _batches(data, batch_size, num_epochs, queue_capacity if shuffle else 0)

    return input_fn


def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int | None = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> InputFn:
    """An input function for a `pandas.DataFrame`; features are a dict of its columns.

    The other arguments and the return value are those of `numpy_input_fn`.

    Args:
      x: the data frame.
      y: labels: a Series, or a DataFrame for a dict of labels; None for none.
      queue_capacity: size of the shuffle buffer, in examples; None for all of them.
      target_column: a name that no column of `x` may have if `y` is given.

    Raises:
      ValueError: `shuffle` is not a bool, the indexes of `x` and `y` differ, or `target_column` is
        a column of `x`.
      TypeError: `target_column` is not a string.
    """
    del num_threads
    _check_shuffle(shuffle)
    _check_frames(x, y, target_column)
    features = {name: x[name].to_numpy(copy=True) for name in x.columns}
    data: Any = features
    if y is not None:
        labels = {n: y[n].to_numpy(copy=True) for n in y.columns} if y.ndim == 2 else y.to_numpy()
        data = (features, labels)
    buffer = queue_capacity or 4 * len(x)

    def input_fn() -> Any:
        return _batches(data, batch_size, num_epochs, buffer if shuffle else 0)

    return input_fn


def _batches(data: Any, size: int, epochs: int | None, shuffle_buffer: int) -> Any:
    with tf.compat.v1.name_scope("enqueue_input"):  # keeps top-level op names free for the user
        dataset = tf.data.Dataset.from_tensor_slices(data)
        if shuffle_buffer:
            dataset = dataset.shuffle(max(shuffle_buffer, size))
        # Batches span epochs, so without an end all of them are full.
        dataset = dataset.repeat(epochs).batch(size, drop_remainder=epochs is None)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        if tf.executing_eagerly():
            return dataset
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        initializers = tf.compat.v1.GraphKeys.TABLE_INITIALIZERS
        tf.compat.v1.add_to_collection(initializers, iterator.initializer)
        return iterator.get_next()


def _check_shuffle(shuffle: Any) -> None:
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it "
            f"as True for training); got {shuffle}"
        )


def _check_arrays(x: Any, y: Any) -> None:
    if not isinstance(x, dict | np.ndarray):
        raise TypeError(f"x must be a dict or array; got {type(x).__name__}")
    if isinstance(x, dict) and not x:
        raise ValueError("x cannot be an empty dict")
    if isinstance(x, np.ndarray) and not x.size:
        raise ValueError("x cannot be an empty array")
    if isinstance(y, dict) and not y:
        raise ValueError("y cannot be empty dict, use None instead.")
    if isinstance(x, dict) and isinstance(y, dict) and (both := set(x) & set(y)):
        raise ValueError(f"{len(both)} duplicate keys are found in both x and y: {both}")
    shapes_x, shapes_y = _shapes(x), _shapes(y)
    if len({shape[0] for shape in (*shapes_x.values(), *shapes_y.values())}) != 1:
        raise ValueError(
            "Length of tensors in x and y is mismatched. All elements in x and y must have the "
            f"same length.\nShapes in x: {shapes_x}\nShapes in y: {shapes_y}\n"
        )


def _shapes(arrays: Any) -> dict[str, tuple[int, ...]]:
    if arrays is None:
        return {}
    if not isinstance(arrays, dict):
        arrays = {"": arrays}
    return {name: np.shape(array) for name, array in arrays.items()}


def _check_frames(x: Any, y: Any, target_column: Any) -> None:
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    if y is not None and target_column in x:
        raise ValueError(
            f"Cannot use name {target_column} for target column: DataFrame already has a column "
            f"with that name: {x.columns}"
        )
    if y is not None and not np.array_equal(x.index, y.index):
        raise ValueError(
            f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
        )


__all__ = ["numpy_input_fn", "pandas_input_fn"]
