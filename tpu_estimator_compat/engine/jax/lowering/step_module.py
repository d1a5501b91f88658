"""A lowered step as plain data, without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Partition = Sequence[Sequence[int] | None] | None

RANDOM_STATE = "random_state"
"""Name of the generator's state among the variables: int64, a counter of 128 bits and a key."""

PREFIX = "tpu_estimator_compat."
"""The prefix of custom calls that `module.legalize` turns into ops of StableHLO."""


@dataclasses.dataclass(frozen=True)
class Array:
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def to_json(self) -> list[Any]:
        return [list(self.shape), self.dtype.name]

    @classmethod
    def from_json(cls, fields: list[Any]) -> Array:
        shape, dtype = fields
        return cls(tuple(shape), np.dtype(dtype))


@dataclasses.dataclass(frozen=True)
class StepModule:
    """One replica's step.

    Attributes:
      code: a StableHLO module, text or bytecode. Its arguments are `feeds`, then `variables` in
        their order; its results are the fetches, then new values of the variables that the step
        writes, which its attribute `mhlo.input_output_alias` ties to arguments.
      variables: with `RANDOM_STATE` where the step draws random numbers.
      fetches: names of tensors.
    """

    code: bytes
    feeds: tuple[Array, ...]
    variables: Mapping[str, Array]
    fetches: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """All but the code, as JSON values."""
        return {
            "feeds": [array.to_json() for array in self.feeds],
            "variables": {name: array.to_json() for name, array in self.variables.items()},
            "fetches": list(self.fetches),
        }

    @classmethod
    def from_json(cls, code: bytes, fields: Mapping[str, Any]) -> StepModule:
        return cls(
            code,
            tuple(map(Array.from_json, fields["feeds"])),
            {name: Array.from_json(array) for name, array in fields["variables"].items()},
            tuple(fields["fetches"]),
        )

    @property
    def stored(self) -> list[str]:
        """Names of the variables that keep their values from one step to the next."""
        return [name for name in self.variables if name != RANDOM_STATE]


@dataclasses.dataclass(frozen=True)
class Dispatch:
    """Steps that the JAX runtime hands to the devices at once.

    Attributes:
      most: the largest number of steps; 1 compiles no loop.
      loss: index of the fetch whose NaN mean over replicas ends the loop; None for none.
      cores: the number of devices of a replica.
      partition: per feed and dimension, the number of parts over the devices of a replica; None for
        no split.
    """

    step: StepModule
    most: int = 1
    loss: int | None = None
    cores: int = 1
    partition: Partition = None

    def to_json(self) -> dict[str, Any]:
        """All but the code, as JSON values."""
        own = {name: getattr(self, name) for name in ("most", "loss", "cores", "partition")}
        return {**self.step.to_json(), **own}

    @classmethod
    def from_json(cls, code: bytes, fields: Mapping[str, Any]) -> Dispatch:
        own = {name: fields[name] for name in ("most", "loss", "cores", "partition")}
        return cls(StepModule.from_json(code, fields), **own)
