"""Pads the last batches of a prediction to one static shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Padded(NamedTuple):
    """An element of a padded dataset.

    Attributes:
      features, labels: padded along dimension 0; labels are an empty tuple where there are none.
      is_padding: int32 of shape [batch]: 1 for rows of padding, 0 for the user's.
    """

    features: Any
    labels: Any
    is_padding: Any


def pad(dataset: tf.data.Dataset, batch_size: int) -> tf.data.Dataset:
    """A dataset of `Padded` elements with `batch_size` rows, from batches of at most that size."""

    @tf.autograph.experimental.do_not_convert
    def pad_element(*element: Any) -> Padded:
        features, labels = element if len(element) == 2 else (element[0], ())
        first = tf.nest.flatten(features)[0]
        rows = _rows(first)
        message = f"input_fn gave more rows than params['batch_size'], which is {batch_size}."
        known = first.shape.as_list()[0]  # not shape[0], which TF1 behavior makes a Dimension
        if known is not None and known > batch_size:
            raise ValueError(f"{message} Got {known}.")
        check = tf.debugging.assert_less_equal(rows, batch_size, message=message)
        with tf.control_dependencies([check]):
            missing = batch_size - rows
        pad_one = _pad_rows(missing, batch_size)
        is_padding = tf.cast(tf.range(batch_size) >= rows, tf.int32)
        return Padded(
            tf.nest.map_structure(pad_one, features),
            tf.nest.map_structure(pad_one, labels),
            is_padding,
        )

    return dataset.map(pad_element)


def _rows(tensor: tf.Tensor | tf.SparseTensor) -> tf.Tensor:
    if isinstance(tensor, tf.SparseTensor):
        return tf.cast(tensor.dense_shape[0], tf.int32)
    return tf.shape(tensor)[0]


def _pad_rows(missing: tf.Tensor, batch_size: int) -> Callable[[Any], Any]:
    def pad_one(tensor: Any) -> Any:
        if isinstance(tensor, tf.SparseTensor):  # rows without values
            shape = tf.concat([[tf.constant(batch_size, tf.int64)], tensor.dense_shape[1:]], 0)
            with tf.control_dependencies([missing]):  # and so the check of the number of rows
                longer = tf.SparseTensor(tensor.indices, tensor.values, tf.identity(shape))
            longer.set_shape(tf.TensorShape([batch_size]).concatenate(tensor.shape[1:]))
            return longer
        paddings = [[0, missing]] + [[0, 0]] * (tensor.shape.rank - 1)
        padded = tf.pad(tensor, tf.stack(paddings))
        padded.set_shape(tf.TensorShape([batch_size]).concatenate(tensor.shape[1:]))
        return padded

    return pad_one


def fill_last_step(dataset: tf.data.Dataset, replicas: int) -> tf.data.Dataset:
    """Appends `replicas - 1` batches of padding to `Padded` batches, so that the last step is full.

    Steps take one batch per replica; batches left over after the last full step are dropped.
    """
    if replicas == 1:
        return dataset
    empty = tf.nest.map_structure(_nothing, dataset.element_spec)
    empty = empty._replace(is_padding=tf.ones_like(empty.is_padding))
    return dataset.concatenate(tf.data.Dataset.from_tensors(empty).repeat(replicas - 1))


def _nothing(spec: tf.TypeSpec) -> Any:
    """A tensor of zeros for a spec; for a sparse spec, a tensor without values."""
    if not isinstance(spec, tf.SparseTensorSpec):
        return tf.zeros(spec.shape, spec.dtype)
    shape = [size or 0 for size in spec.shape]
    indices = tf.zeros([0, len(shape)], tf.int64)
    none = tf.SparseTensor(indices, tf.zeros([0], spec.dtype), shape)
    none.set_shape(spec.shape)
    return none
