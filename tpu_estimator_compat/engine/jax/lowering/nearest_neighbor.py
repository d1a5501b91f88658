"""The gradient of `tf.image.resize_nearest_neighbor`, for which only a TPU's XLA has a kernel."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

OP_TYPE = "ResizeNearestNeighborGrad"


def call(
    op_type: str, inputs: Sequence[tf.Tensor], switches: dict[str, bool]
) -> Sequence[tf.Tensor]:
    """Adds up, for each pixel of the original image, the gradients of its copies.

    The inputs are gradients [batch, rows, columns, channels] and the size of the original image,
    int32 [2]; the switches are `align_corners` and `half_pixel_centers`.
    """
    del op_type
    gradients, size = inputs
    rows, columns = (
        _copies(tf.shape(gradients)[axis], size[axis - 1], gradients.dtype, **switches)
        for axis in (1, 2)
    )
    return [tf.einsum("byxc,yr,xs->brsc", gradients, rows, columns)]


def _copies(
    after: tf.Tensor, before: tf.Tensor, dtype: tf.DType, *, align_corners: bool, **others: bool
) -> tf.Tensor:
    """A matrix [after, before] of 0 and 1: the original of each pixel along one side.

    Positions are computed in float32, as in TensorFlow's kernel.
    """
    to, of = tf.cast(after, tf.float32), tf.cast(before, tf.float32)
    scale = of / to
    if align_corners:
        scale = tf.where(after > 1, (of - 1) / tf.maximum(to - 1, 1), scale)
    place = tf.range(to)
    if others["half_pixel_centers"]:
        place += 0.5
    place *= scale
    # Rounds half away from zero, which `tf.round` does not.
    place = tf.floor(place + 0.5) if align_corners else tf.floor(place)
    return tf.one_hot(tf.cast(tf.minimum(place, of - 1), tf.int32), before, dtype=dtype)
