"""Functions that a written file has of its own: what TensorFlow has in one operation, Keras not.

The file gets the source of those that it names.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from keras import ops


def local_response_normalization(
    x: Any, depth_radius: int, bias: float, alpha: float, beta: float
) -> Any:
    width = 2 * depth_radius + 1
    squares = ops.pad(ops.square(x), ((0, 0), (0, 0), (0, 0), (depth_radius, depth_radius)))
    total = sum(squares[..., i : i + x.shape[-1]] for i in range(width))
    return x / (bias + alpha * total) ** beta


def resize_bilinear(x: Any, size: Any, align_corners: bool) -> Any:
    # ops.image.resize takes the centers of pixels.
    for axis, new in enumerate(size, 1):
        old = x.shape[axis]
        step = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
        places = ops.arange(new, dtype="float32") * step
        low = ops.cast(places, "int32")
        first = ops.take(x, low, axis=axis)
        second = ops.take(x, ops.minimum(low + 1, old - 1), axis=axis)
        part = ops.reshape(places - ops.floor(places), (-1,) + (1,) * (3 - axis))
        x = first + (second - first) * part
    return x


def reverse_sequence(x: Any, lengths: Any) -> Any:
    steps = ops.expand_dims(ops.arange(ops.shape(x)[1]), 0)
    lengths = ops.expand_dims(ops.cast(lengths, "int32"), 1)
    places = ops.where(steps < lengths, lengths - 1 - steps, steps)
    for _ in x.shape[2:]:
        places = ops.expand_dims(places, -1)
    return ops.take_along_axis(x, places, axis=1)


FUNCTIONS = {
    each.__name__: each
    for each in (local_response_normalization, resize_bilinear, reverse_sequence)
}


def sources(code: list[str]) -> list[str]:
    """The lines of the functions that code names, as an author writes them, without types."""
    text = "\n".join(code)
    named = [each for name, each in FUNCTIONS.items() if re.search(rf"\b{name}\(", text)]
    plain = [re.sub(r": (Any|int|float|bool)\b| -> Any", "", inspect.getsource(f)) for f in named]
    return [line for each in plain for line in ["", "", *each.rstrip().splitlines()]]
