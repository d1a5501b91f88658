"""A lowered step as plain data, which needs no TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

RANDOM_STATE = "random_state"
"""Name of the generator's state among the variables: int64, a counter of 128 bits and a key."""

PREFIX = "tpu_estimator_compat."
"""Begins the names of custom calls that stand for ops of StableHLO."""


@dataclasses.dataclass(frozen=True)
class Array:
    """Shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype


@dataclasses.dataclass(frozen=True)
class StepModule:
    """One replica's step.

    Attributes:
      code: a serialized StableHLO module. Its arguments are the feeds, then the variables; its
        results are the fetches, then new values of variables that the step writes, which its
        attribute `mhlo.input_output_alias` ties to arguments.
      feeds: what a replica is fed in a step.
      variables: in the order of the arguments, by name; `RANDOM_STATE` is among them where the step
        draws random numbers.
      fetches: names of the tensors that the step returns.
    """

    code: bytes
    feeds: tuple[Array, ...]
    variables: Mapping[str, Array]
    fetches: tuple[str, ...]
