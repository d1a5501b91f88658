"""Arrays that are made of one variable, such as a kernel that the graph reshapes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.graph import Bound, Value, Weight

_RESHAPES = ("ExpandDims", "Reshape", "Squeeze")


@dataclasses.dataclass(frozen=True)
class Arranged:
    """Makes an array of another, which is transposed first if it is `turned`."""

    shape: tuple[int, ...]
    turned: bool

    def __call__(self, array: np.ndarray) -> np.ndarray:
        return (array.T if self.turned else array).reshape(self.shape)


@dataclasses.dataclass(frozen=True)
class Made:
    """An array of one variable's elements: of the transposed variable if it is `turned`."""

    weight: Weight
    shape: tuple[int, ...]
    turned: bool = False

    @classmethod
    def of(cls, value: Value) -> Made | None:
        """What a value is made of, if of one variable alone."""
        node = value.node
        if value.weight is not None:
            return cls(value.weight, value.weight.shape)
        made = cls.of(node.inputs[0]) if node.kind in (*_RESHAPES, "Transpose") else None
        if made is None or value.shape is None or None in value.shape:
            return None
        if node.kind != "Transpose":
            return made.reshaped(*map(int, value.shape))  # type: ignore[arg-type]
        order = node.inputs[1].constant
        return made.transposed() if order is not None and order.tolist() == [1, 0] else None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def trailing(self) -> tuple[int, ...]:
        """The shape without leading dimensions of 1, along which it broadcasts."""
        first = next((i for i, n in enumerate(self.shape) if n != 1), len(self.shape) - 1)
        return self.shape[max(first, 0) :]

    @property
    def arranged(self) -> bool:
        """Whether it differs from the variable."""
        return self.turned or self.shape != self.weight.shape

    def reshaped(self, *shape: int) -> Made:
        return dataclasses.replace(self, shape=shape)

    def transposed(self) -> Made | None:
        """The transposed matrix; None of what is more than a variable."""
        return None if self.arranged else Made(self.weight, self.shape[::-1], turned=True)

    def restore(self, array: tf.Tensor) -> tf.Tensor:
        """Makes the variable's array of it."""
        before = self.weight.shape[::-1] if self.turned else self.weight.shape
        array = array if before == self.shape else tf.reshape(array, before)
        return tf.transpose(array, [1, 0]) if self.turned else array

    def bound(self) -> Bound:
        return Bound([self.weight], Arranged(self.shape, self.turned) if self.arranged else None)
