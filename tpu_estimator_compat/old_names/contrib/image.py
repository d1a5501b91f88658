"""`tf.contrib.image`: projective transforms of images, and matches of what is in them."""

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
    """Moves pixels by projective transforms.

    A transform `[a0, a1, a2, b0, b1, b2, c0, c1]` takes the output's pixel (x, y) from the input's
    ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1. What lies outside
    of the input is 0.

    Args:
      images: [n, height, width, channels], [height, width, channels] or [height, width].
      transforms: [8] or [n, 8].
      interpolation: `NEAREST` or `BILINEAR`.
      output_shape: [height, width]; None for those of the input.
      name: of the operation.

    Returns:
      Images of the same type and rank.

    Raises:
      TypeError: images of another rank, or transforms of another rank.
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
        return _like(moved, images)


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Rotates images about their centres, counterclockwise.

    Args:
      images: as for `transform`.
      angles: radians, a scalar or of shape [n].
      interpolation: `NEAREST` or `BILINEAR`.
      name: of the operation.
    """
    with tf.name_scope(name, "rotate"):
        shape = tf.cast(tf.shape(_batch(tf.convert_to_tensor(images))), tf.float32)
        transforms = angles_to_projective_transforms(angles, shape[1], shape[2])
        return transform(images, transforms, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Shifts images.

    Args:
      images: as for `transform`.
      translations: pixels [dx, dy], of shape [2] or [n, 2].
      interpolation: `NEAREST` or `BILINEAR`.
      name: of the operation.
    """
    with tf.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> tf.Tensor:
    """The transforms, [n, 8], of rotations about the centre of an image.

    Args:
      angles: radians, a scalar or of shape [n].
      image_height: in pixels.
      image_width: in pixels.
      name: of the operation.

    Raises:
      TypeError: angles of another rank.
    """
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
    """The transforms, [n, 8], of shifts by [dx, dy], of shape [2] or [n, 2].

    Raises:
      TypeError: shifts of another rank.
    """
    with tf.name_scope(name, "translations_to_projective_transforms"):
        shifts = tf.convert_to_tensor(translations, tf.float32)
        if shifts.shape.rank not in (1, 2):
            raise TypeError(f"Translations should have rank 1 or 2; got {shifts.shape}.")
        dx, dy = tf.unstack(tf.reshape(shifts, [-1, 2]), axis=1)
        one, zero = tf.ones_like(dx), tf.zeros_like(dx)
        return tf.stack([one, zero, -dx, zero, one, -dy, zero, zero], axis=1)


def flat_transforms_to_matrices(transforms: Any) -> tf.Tensor:
    """Transforms [n, 8] as matrices [n, 3, 3]."""
    transforms = tf.reshape(tf.convert_to_tensor(transforms, tf.float32), [-1, 8])
    last = tf.ones([tf.shape(transforms)[0], 1])
    return tf.reshape(tf.concat([transforms, last], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> tf.Tensor:
    """Matrices [n, 3, 3] as transforms [n, 8]."""
    flat = tf.reshape(tf.convert_to_tensor(transform_matrices, tf.float32), [-1, 9])
    return flat[:, :8] / flat[:, 8:]


def compose_transforms(*transforms: Any) -> tf.Tensor:
    """One transform, [n, 8], in place of several, the first one first.

    Raises:
      ValueError: none are given.
    """
    if not transforms:
        raise ValueError("compose_transforms needs at least one transform; got none.")
    composed = flat_transforms_to_matrices(transforms[0])
    for following in transforms[1:]:
        composed = tf.matmul(composed, flat_transforms_to_matrices(following))
    return matrices_to_flat_transforms(composed)


def bipartite_match(
    distance_mat: Any, num_valid_rows: Any, top_k: Any = -1, name: str | None = "bipartite_match"
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pairs rows with columns greedily: the closest pair first, then the closest of what is left.

    Args:
      distance_mat: distances, [rows, columns].
      num_valid_rows: the number of first rows that take part, a scalar or of shape [1]; all,
        if it is negative.
      top_k: the number of pairs to make at most; as many as there can be, if it is not positive.
      name: of the operation.

    Returns:
      The column of each row and the row of each column, as int32; -1 where there is none. Of equal
      distances the first one counts; in TensorFlow 1 it was any of them.

    Raises:
      ValueError: distances are of another rank.
      tf.errors.InvalidArgumentError: there are fewer rows than are to take part.
    """
    with tf.name_scope(name, "bipartite_match"):
        distances = tf.convert_to_tensor(distance_mat, tf.float32)
        distances.shape.assert_has_rank(2)
        rows, columns = tf.unstack(tf.shape(distances))
        valid = tf.cast(tf.reshape(num_valid_rows, []), tf.int32)
        too_few = "There should be at least num_valid_rows rows in distance_mat."
        enough = tf.debugging.assert_less_equal(valid, rows, message=too_few)
        with tf.control_dependencies([enough]):
            valid = tf.where_v2(valid < 0, rows, valid)
        most = tf.minimum(valid, columns)
        pairs = tf.where_v2(top_k > 0, tf.minimum(top_k, most), most)
        # Ranks, not distances: equal ones have an order, and any of them may be infinite.
        order = tf.argsort(tf.reshape(distances, [-1]), stable=True)
        ranks = tf.reshape(tf.argsort(order), [rows, columns])
        free = tf.where_v2((tf.range(rows) < valid)[:, tf.newaxis], ranks, tf.int32.max)
        start = (0, free, tf.fill([rows], -1), tf.fill([columns], -1))
        found = tf.while_loop(lambda made, *_: made < pairs, _pair_closest, start)
        of_rows = tf.ensure_shape(found[2], distances.shape[:1])
        return of_rows, tf.ensure_shape(found[3], distances.shape[1:])


def _pair_closest(
    made: tf.Tensor, free: tf.Tensor, of_rows: tf.Tensor, of_columns: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    rows, columns = tf.unstack(tf.shape(free))
    closest = tf.argmin(tf.reshape(free, [-1]), output_type=tf.int32)
    row, column = closest // columns, closest % columns
    is_row, is_column = tf.equal(tf.range(rows), row), tf.equal(tf.range(columns), column)
    free = tf.where_v2(is_row[:, tf.newaxis] | is_column, tf.int32.max, free)
    of_rows = tf.where_v2(is_row, column, of_rows)
    return made + 1, free, of_rows, tf.where_v2(is_column, row, of_columns)


def _batch(images: tf.Tensor) -> tf.Tensor:
    rank = images.shape.rank
    if rank == 2:
        return images[tf.newaxis, :, :, tf.newaxis]
    if rank == 3:
        return images[tf.newaxis]
    if rank != 4:
        raise TypeError(f"Images should have rank between 2 and 4; got {images.shape}.")
    return images


def _like(batch: tf.Tensor, images: tf.Tensor) -> tf.Tensor:
    rank = images.shape.rank
    return batch[0, :, :, 0] if rank == 2 else batch[0] if rank == 3 else batch


__all__ = [
    "angles_to_projective_transforms",
    "bipartite_match",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]
