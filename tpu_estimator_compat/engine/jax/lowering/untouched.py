"""Variables of any size whose values take no memory, for programs that are lowered and not run.

XLA reads only shapes and types. So all values map the same sparse file into memory, and no page of
it is ever read.
"""

from __future__ import annotations

import math
import mmap
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

_SMALL = 2**20  # bytes: smaller variables have memory of their own


class Untouched:
    """Makes variables of at most `largest` bytes, whose values must not be read."""

    def __init__(self, largest: int):
        self._bytes: Any = b""
        if largest > _SMALL:
            with tempfile.TemporaryFile() as file:
                file.truncate(largest)
                self._bytes = mmap.mmap(file.fileno(), largest)

    def variable(self, shape: tf.TensorShape, dtype: tf.DType) -> tf.Variable:
        dims = shape.as_list()
        if math.prod(dims) * dtype.size <= _SMALL or dtype == tf.bool:
            return tf.Variable(lambda: tf.raw_ops.Empty(shape=dims, dtype=dtype, init=False))
        # Numbers of these widths pass from NumPy without a copy; others have the same bits.
        width = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64, 16: np.complex128}
        numbers: Any = np.frombuffer(self._bytes, width[dtype.size], count=math.prod(dims))
        shared = tf.experimental.dlpack.from_dlpack(numbers.reshape(dims).__dlpack__())
        value = shared if shared.dtype == dtype else tf.bitcast(shared, dtype)
        return tf.Variable(lambda: value)
