"""Arrays that are made of one variable, such as a kernel that the graph reshapes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import Bound, Value, Weight

Step = tuple[str, Any]


@dataclasses.dataclass(frozen=True)
class Steps:
    """Reshapes and transposes of an array, one after another."""

    steps: tuple[Step, ...]

    def __call__(self, array: np.ndarray) -> np.ndarray:
        for name, argument in self.steps:
            array = getattr(np, name)(array, argument)
        return array


@dataclasses.dataclass(frozen=True)
class Made:
    """An array of one variable's elements."""

    weight: Weight
    shape: tuple[int, ...]
    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, value: Value) -> Made | None:
        """What a value is made of, if of one variable alone."""
        if value.weight is not None:
            return cls(value.weight, value.weight.shape)
        if value.node.kind not in ("Reshape", "ExpandDims", "Squeeze", "Transpose"):
            return None
        made = cls.of(value.node.inputs[0])
        if made is None or value.shape is None or None in value.shape:
            return None
        if value.node.kind != "Transpose":
            return made.reshaped(*value.shape)  # type: ignore[arg-type]
        order = value.node.inputs[1].constant
        return None if order is None else made.transposed(*order.tolist())

    @property
    def dtype(self) -> str:
        return self.weight.dtype

    @property
    def trailing(self) -> tuple[int, ...]:
        """The shape without leading dimensions of 1, along which it broadcasts."""
        first = next((i for i, n in enumerate(self.shape) if n != 1), len(self.shape) - 1)
        return self.shape[max(first, 0) :]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reshaped(self, *shape: int) -> Made:
        steps = self.steps
        if steps and steps[-1][0] == "reshape":
            steps = steps[:-1]
        if not steps and shape == self.weight.shape:
            return Made(self.weight, shape)
        if math.prod(shape) == self.size and steps == self.steps and shape == self.shape:
            return self
        return Made(self.weight, shape, (*steps, ("reshape", shape)))

    def transposed(self, *order: int) -> Made:
        shape = tuple(self.shape[i] for i in order)
        return Made(self.weight, shape, (*self.steps, ("transpose", order)))

    def inverse(self) -> tuple[Step, ...]:
        """The steps that make the variable's array of this one."""
        found: list[Step] = []
        shape = self.weight.shape
        for name, argument in self.steps:
            back = shape if name == "reshape" else tuple(np.argsort(argument).tolist())
            found.insert(0, (name, back))
            shape = argument if name == "reshape" else tuple(shape[i] for i in argument)
        return tuple(found)

    def bound(self) -> Bound:
        return Bound([self.weight], Steps(self.steps) if self.steps else None)
