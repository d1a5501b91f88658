"""The length of the inner loop: how long the device runs before the host gets control again."""

import re
from typing import Any, NamedTuple

import numpy as np

_STEPS_OR_TIME = re.compile(r"(?P<value>[1-9]\d*)(?P<suffix>[smh]?)")
_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600}


class IterationsPerLoopCounter(NamedTuple):
    """Length of the inner loop: `value` steps (`unit='count'`) or seconds (`unit='seconds'`)."""

    value: int
    unit: str


def check_positive_integer(value: Any, name: str) -> None:
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be int, got {type(value)}: {value!r}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, got {value}")


def parse_iterations_per_loop(iterations_per_loop: int | str) -> IterationsPerLoopCounter:
    """The length of a loop in steps (`1000`, `"1000"`) or as a time (`"30s"`); else ValueError."""
    match = _STEPS_OR_TIME.fullmatch(str(iterations_per_loop))
    if match is None:
        raise ValueError(
            "Invalid TPUConfig `iterations_per_loop` value. Value must be positive integer value "
            "or time-based value `<N><s|m|h>` where <N> is any positive integer and `s`, `m`, `h` "
            "are unit of time in seconds, minutes, hours respectively. Examples of valid values: "
            f"`3600s`, `60m`, `1h`. Got {iterations_per_loop!r}."
        )
    value, suffix = int(match["value"]), match["suffix"]
    if not suffix:
        return IterationsPerLoopCounter(value, "count")
    return IterationsPerLoopCounter(value * _SECONDS_PER_UNIT[suffix], "seconds")
