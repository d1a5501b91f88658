"""`tf.contrib.image`: projective transforms of images."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> tf.Tensor:
    """Applies projective transforms to images.

    A transform `[a0, a1, a2, b0, b1, b2, c0, c1]` maps the output pixel (x, y) to the input pixel
    ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), with k = c0 x + c1 y + 1. Pixels outside the
    input are 0. Images have rank 2, 3 or 4; transforms have shape [8] or [n, 8].
    """
    with tf.name_scope(name, "transform"):
        images = tf.convert_to_tensor(images)
        batch = _batch(images)
        transforms = tf.convert_to_tensor(transforms, tf.float32)
        if transforms.shape.rank == 1:
            transforms = transforms[tf.newaxis]
        if transforms.shape.rank != 2:
            raise TypeError(f"Transforms should have rank 1 or 2; got {transforms.shape}.")
        if output_shape is None:
            output_shape = tf.shape(batch)[1:3]
        moved = tf.raw_ops.ImageProjectiveTransformV2(
            images=batch,
            transforms=transforms,
            output_shape=tf.convert_to_tensor(output_shape, tf.int32),
            interpolation=interpolation.upper(),
        )
        rank = images.shape.rank
        return moved[0, :, :, 0] if rank == 2 else moved[0] if rank == 3 else moved


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Rotates images about their centers, counterclockwise; `angles` are radians, scalar or [n]."""
    with tf.name_scope(name, "rotate"):
        shape = tf.cast(tf.shape(_batch(tf.convert_to_tensor(images))), tf.float32)
        transforms = angles_to_projective_transforms(angles, shape[1], shape[2])
        return transform(images, transforms, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Shifts images by [dx, dy] pixels; `translations` have shape [2] or [n, 2]."""
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> tf.Tensor:
    """Transforms [n, 8] of rotations about the image center, by radians, scalar or [n]."""
    with tf.name_scope(name, "angles_to_projective_transforms"):
        angles = tf.convert_to_tensor(angles, tf.float32)
        if angles.shape.rank not in (0, 1):
            raise TypeError(f"Angles should have rank 0 or 1; got {angles.shape}.")
        angles = tf.reshape(angles, [-1])
        right = (tf.cast(image_width, tf.float32) - 1) / 2
        low = (tf.cast(image_height, tf.float32) - 1) / 2
        cos, sin = tf.cos(angles), tf.sin(angles)
        zero = tf.zeros_like(cos)
        x_offset = right - (cos * right - sin * low)
        y_offset = low - (sin * right + cos * low)
        return tf.stack([cos, -sin, x_offset, sin, cos, y_offset, zero, zero], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> tf.Tensor:
    """Transforms [n, 8] of shifts by [dx, dy], of shape [2] or [n, 2]."""
    with tf.name_scope(name, "translations_to_projective_transforms"):
        shifts = tf.convert_to_tensor(translations, tf.float32)
        if shifts.shape.rank not in (1, 2):
            raise TypeError(f"Translations should have rank 1 or 2; got {shifts.shape}.")
        dx, dy = tf.unstack(tf.reshape(shifts, [-1, 2]), axis=1)
        one, zero = tf.ones_like(dx), tf.zeros_like(dx)
        return tf.stack([one, zero, -dx, zero, one, -dy, zero, zero], axis=1)


def flat_transforms_to_matrices(transforms: Any) -> tf.Tensor:
    """Converts transforms [n, 8] to matrices [n, 3, 3]."""
    transforms = tf.reshape(tf.convert_to_tensor(transforms, tf.float32), [-1, 8])
    last = tf.ones([tf.shape(transforms)[0], 1])
    return tf.reshape(tf.concat([transforms, last], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> tf.Tensor:
    """Converts matrices [n, 3, 3] to transforms [n, 8]."""
    flat = tf.reshape(tf.convert_to_tensor(transform_matrices, tf.float32), [-1, 9])
    return flat[:, :8] / flat[:, 8:]


def compose_transforms(*transforms: Any) -> tf.Tensor:
    """Composes transforms to one, [n, 8]; the first is applied first."""
    if not transforms:
        raise ValueError("compose_transforms needs at least one transform; got none.")
    composed = flat_transforms_to_matrices(transforms[0])
    for following in transforms[1:]:
        composed = tf.matmul(composed, flat_transforms_to_matrices(following))
    return matrices_to_flat_transforms(composed)


def _batch(images: tf.Tensor) -> tf.Tensor:
    rank = images.shape.rank
    if rank == 2:
        return images[tf.newaxis, :, :, tf.newaxis]
    if rank == 3:
        return images[tf.newaxis]
    if rank != 4:
        raise TypeError(f"Images should have rank between 2 and 4; got {images.shape}.")
    return images


__all__ = [
    "angles_to_projective_transforms",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]
