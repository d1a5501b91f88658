"""Makes one element per replica from each batch: slices or copies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

Structure = Any


def sizes(element_spec: Structure, batch_axis: Sequence[int] | None) -> set[Any]:
    """Sizes of an element's tensors along their batch dimensions; None for an unknown one."""
    flat = tf.nest.flatten(element_spec)
    return {
        _size(spec, axis)
        for spec, axis in zip(flat, _axes(batch_axis, flat), strict=False)
        if getattr(spec, "shape", None) is not None and spec.shape.rank
    }


def copies(dataset: tf.data.Dataset, count: int) -> tf.data.Dataset:
    if count == 1:
        return dataset

    @tf.autograph.experimental.do_not_convert
    def repeated(*element: Any) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensors(_single(element)).repeat(count)

    return dataset.flat_map(repeated)


def split(
    dataset: tf.data.Dataset, parts: int, wanted: range, batch_axis: Sequence[int] | None
) -> tf.data.Dataset:
    """A dataset of slices of every batch: of `parts` slices, those with the indices `wanted`."""
    if parts == 1:
        return dataset

    @tf.autograph.experimental.do_not_convert
    def slices(*element: Any) -> tf.data.Dataset:
        cut = _slices(_single(element), parts, batch_axis)
        return cut.skip(wanted.start).take(len(wanted))

    return dataset.flat_map(slices)


def _single(element: tuple) -> Structure:
    """Packs a dataset function's arguments: it gets a tuple element unpacked."""
    return element[0] if len(element) == 1 else element


def _slices(element: Structure, parts: int, batch_axis: Sequence[int] | None) -> tf.data.Dataset:
    flat = tf.nest.flatten(element)
    axes = _axes(batch_axis, flat)
    if len(axes) != len(flat):
        raise ValueError(
            f"batch_axis {batch_axis} has {len(axes)} entries, but input_fn gives {len(flat)} "
            "tensors: one axis per tensor of (features, labels) is needed."
        )
    if any(isinstance(t, tf.SparseTensor) for t in flat):
        return _slices_with_sparse(element, parts, axes)
    cut = [_cut(t, parts, axis) for t, axis in zip(flat, axes, strict=True)]
    return tf.data.Dataset.from_tensor_slices(tf.nest.pack_sequence_as(element, cut))


def _slices_with_sparse(element: Structure, parts: int, axes: Sequence[int]) -> tf.data.Dataset:
    """`_slices` for elements with sparse tensors, whose slices have no common shape."""
    cut = [
        functools.partial(_sparse_slice, t, parts, _share(t, parts, axis))
        if isinstance(t, tf.SparseTensor)
        else functools.partial(tf.gather, _cut(t, parts, axis))
        for t, axis in zip(tf.nest.flatten(element), axes, strict=True)
    ]

    @tf.autograph.experimental.do_not_convert
    def slice_at(index: tf.Tensor) -> Structure:
        return tf.nest.pack_sequence_as(element, [part(index) for part in cut])

    return tf.data.Dataset.range(parts).map(slice_at)


def _sparse_slice(
    tensor: tf.SparseTensor, parts: int, share: int | None, index: tf.Tensor
) -> tf.SparseTensor:
    rows = tensor.dense_shape[0]
    whole = tf.debugging.assert_equal(
        rows % parts,
        tf.constant(0, tf.int64),
        message=f"input_fn gives a batch that cannot be split among {parts} replicas. Use "
        "params['batch_size'], and drop_remainder=True.",
    )
    with tf.control_dependencies([whole]):
        size = rows // parts
    rest = tensor.dense_shape[1:]
    start = tf.concat([[index * size], tf.zeros_like(rest)], 0)
    part = tf.sparse.slice(tensor, start, tf.concat([[size], rest], 0))
    part.set_shape(tf.TensorShape([share]).concatenate(tensor.shape[1:]))
    return part


def _axes(batch_axis: Sequence[int] | None, flat: Sequence[Any]) -> list[int]:
    return [0] * len(flat) if batch_axis is None else list(tf.nest.flatten(batch_axis))


def _size(tensor: Any, axis: int) -> int | None:
    shape = tensor.shape.as_list()  # not shape[axis], which TF1 behavior makes a Dimension
    if not -len(shape) <= axis < len(shape):
        raise ValueError(
            f"batch_axis, which is 0 by default, is {axis} for {tensor} of input_fn, whose rank is "
            f"{len(shape)}. It must be one of the tensor's dimensions, counted from 0."
        )
    return shape[axis]


def _share(tensor: Any, replicas: int, axis: int) -> int | None:
    """The size of one replica's slice; None if unknown."""
    size = _size(tensor, axis)
    if size is not None and size % replicas:
        raise ValueError(
            f"input_fn gives a batch of {size} examples (dimension {axis} of {tensor}), which "
            f"cannot be split among {replicas} replicas. Use params['batch_size'], and "
            "drop_remainder=True."
        )
    if axis and isinstance(tensor, tf.SparseTensor):
        raise ValueError(
            f"batch_axis is {axis} for {tensor} of input_fn, which is sparse: sparse tensors are "
            "split along dimension 0."
        )
    return None if size is None else size // replicas


def _cut(tensor: tf.Tensor, replicas: int, axis: int) -> tf.Tensor:
    """`tensor` with a new dimension 0 of one slice per replica."""
    share = _share(tensor, replicas, axis)
    if axis:
        return tf.stack(tf.split(tensor, replicas, axis))
    rest = tensor.shape[1:]
    leading = [replicas, -1 if share is None else share]
    cut = tf.reshape(tensor, tf.concat([leading, tf.shape(tensor)[1:]], axis=0))
    cut.set_shape(tf.TensorShape([replicas, share]).concatenate(rest))
    return cut
