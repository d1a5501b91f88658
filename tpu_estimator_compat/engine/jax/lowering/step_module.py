"""A lowered step as plain data, which needs no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


Partition = Sequence[Sequence[int] | None] | None

RANDOM_STATE = "random_state"
"""Name of the generator's state among the variables: int64, a counter of 128 bits and a key."""

PREFIX = "tpu_estimator_compat."
"""Begins the names of custom calls that stand for ops of StableHLO."""


@dataclasses.dataclass(frozen=True)
class Array:
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    def to_json(self) -> list[Any]:
        """As JSON values."""
        return [list(self.shape), self.dtype.name]

    @classmethod
    def from_json(cls, fields: list[Any]) -> Array:
        """Undoes `to_json`."""
        import numpy as np

        shape, dtype = fields
        return cls(tuple(shape), np.dtype(dtype))


@dataclasses.dataclass(frozen=True)
class StepModule:
    """One replica's step.

    Attributes:
      code: a StableHLO module, text or bytecode. Its arguments are the feeds, then the variables;
        its results are the fetches, then new values of variables that the step writes, which its
        attribute `mhlo.input_output_alias` ties to arguments.
      feeds: the input of a replica in a step.
      variables: in the order of the arguments, by name; `RANDOM_STATE` is among them where the step
        draws random numbers.
      fetches: names of the tensors that the step returns.
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
        """The module of code with what `to_json` gave."""
        return cls(
            code,
            tuple(map(Array.from_json, fields["feeds"])),
            {name: Array.from_json(array) for name, array in fields["variables"].items()},
            tuple(fields["fetches"]),
        )

    @property
    def stored(self) -> list[str]:
        """Names of the variables that have values from one step to the next."""
        return [name for name in self.variables if name != RANDOM_STATE]


@dataclasses.dataclass(frozen=True)
class Dispatch:
    """Steps that the JAX runtime hands to the devices at once.

    Attributes:
      step: one replica's step.
      most: the largest number of them. One is no loop.
      loss: number of the fetch that ends the loop where its mean over replicas is NaN; None for
        none.
      cores: devices that share a replica.
      partition: per feed, in how many parts each of its dimensions is split over them, or None;
        None in all for no split.
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
        """The dispatch of a module with what `to_json` gave."""
        own = {name: fields[name] for name in ("most", "loss", "cores", "partition")}
        return cls(StepModule.from_json(code, fields), **own)
