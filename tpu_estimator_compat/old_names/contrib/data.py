"""`tf.contrib.data`: transformations for `Dataset.apply`, and sources.

Most moved to `tf.data.experimental` under the same names. This module has the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.data.util import nest

from tpu_estimator_compat.old_names.contrib import taken_over

_SAME = taken_over(
    globals(),
    {
        tf.data.experimental: """
            AUTOTUNE Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter
            bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch
            enumerate_dataset get_next_as_optional get_single_element group_by_reducer
            group_by_window ignore_errors make_batched_features_dataset make_csv_dataset
            make_saveable_from_iterator map_and_batch parallel_interleave parse_example_dataset
            prefetch_to_device rejection_resample sample_from_datasets scan shuffle_and_repeat
            unbatch unique
        """,
    },
)

Transformation = Callable[[tf.data.Dataset], tf.data.Dataset]


def batch_and_drop_remainder(batch_size: int) -> Transformation:
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: int, padded_shapes: Any, padding_values: Any = None
) -> Transformation:
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable[..., tf.data.Dataset], cycle_length: int, block_length: int = 1
) -> Transformation:
    """`parallel_interleave` in nondeterministic order."""
    return tf.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True
    )


def reduce_dataset(dataset: tf.data.Dataset, reducer: Any) -> Any:
    """Reduces a finite dataset with a `Reducer`; as in TensorFlow 1, without `finalize_func`."""
    start = reducer.init_func(tf.constant(0, tf.int64))
    return dataset.reduce(start, reducer.reduce_func)


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """Checks elements against shapes, which may be partly unknown, and sets them as static shapes.

    Elements of other shapes raise `tf.errors.InvalidArgumentError`.
    """

    def check(*element: Any) -> Any:
        # tf.data's nest treats a list as a tensor and a shape as a leaf.
        whole = element if len(element) > 1 else element[0]
        shapes = nest.flatten(expected_shapes)
        tensors = nest.flatten(whole)
        checked = [tf.ensure_shape(t, shape) for t, shape in zip(tensors, shapes, strict=True)]
        return nest.pack_sequence_as(whole, checked)

    return lambda dataset: dataset.map(check)


def sliding_window_batch(
    window_size: int, stride: int | None = None, window_shift: int | None = None, window_stride=1
) -> Transformation:
    """Batches of `window_size` elements; starts of batches are `window_shift` apart, by default 1.

    `stride` is the old `window_shift`; `window_stride` is the distance of elements in a window.
    """
    if stride is not None and window_shift is not None:
        raise ValueError("Cannot specify both `stride` and `window_shift`")
    shift = stride or window_shift or 1

    def as_batch(*window):
        batches = tf.nest.map_structure(lambda d: d.batch(window_size), window)
        return tf.data.Dataset.zip(batches if len(window) > 1 else batches[0])

    def apply(dataset):
        windows = dataset.window(window_size, shift, window_stride, drop_remainder=True)
        return windows.flat_map(as_batch)

    return apply


def read_batch_features(
    file_pattern: str | list[str],
    batch_size: int,
    features: dict[str, Any],
    reader=tf.data.TFRecordDataset,
    reader_args: list[Any] | None = None,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    capacity: int = 10000,
) -> dict[str, Any]:
    """Batches of parsed `tf.train.Example` records; `capacity` is the shuffle buffer's."""
    dataset = tf.data.experimental.make_batched_features_dataset(
        file_pattern,
        batch_size,
        features,
        reader=reader,
        reader_args=reader_args,
        shuffle=randomize_input,
        num_epochs=num_epochs,
        shuffle_buffer_size=capacity,
    )
    return tf.data.make_one_shot_iterator(dataset).get_next()


__all__ = [
    *_SAME,
    "assert_element_shape",
    "batch_and_drop_remainder",
    "padded_batch_and_drop_remainder",
    "read_batch_features",
    "reduce_dataset",
    "sliding_window_batch",
    "sloppy_interleave",
]
