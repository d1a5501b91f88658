"""Differences between two observations, a line each, that a row of expected differences can name.

Numbers are equal within the tolerance of their place, also within texts; there they have about as
many digits, too, so that a float64 printed where the original printed a float32 shows.
"""

import dataclasses
import difflib
import fnmatch
import math
import re
from typing import Any

import numpy as np
import pytest


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far numbers may be apart.

    Attributes:
        relative: To what is expected.
        absolute: Besides.
        of_largest: Whether floats of an array may be `relative` apart to its largest magnitude:
            slots are small numbers, which an absolute tolerance would wave through, with elements
            near zero, which a relative one would not let pass.
    """

    relative: float
    absolute: float = 0.0
    of_largest: bool = False


Tolerances = tuple[tuple[str, Tolerance], ...]
"""By patterns of places, the first that fits."""

CLOSE: Tolerances = (("*", Tolerance(1e-5)),)

DIGITS = 3  # the shortest text of a float32 has 7 to 9 digits, that of a float64 up to 17

_STEP = re.compile(r"(?<=, step = )\d+")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def assert_none(differences: list[str]) -> None:
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


def differences(
    expected: Any, found: Any, tolerances: Tolerances = CLOSE, path: str = ""
) -> list[str]:
    """What differs, as lines `path: expected -> found`, or `path: -item` and `path: +item`."""
    within = next(
        tolerance for pattern, tolerance in tolerances if fnmatch.fnmatchcase(path, pattern)
    )
    if isinstance(expected, dict) and isinstance(found, dict):
        if is_array(expected) and is_array(found):
            return _of_arrays(expected, found, within, path)
        return _of_dicts(expected, found, tolerances, path)
    if isinstance(expected, list) and isinstance(found, list):
        return _of_lists(expected, found, tolerances, path)
    if path.endswith("error.text") and says_more(expected, found):
        return []
    return (
        [] if equal(expected, found, within) else [f"{path}: {short(expected)} -> {short(found)}"]
    )


def is_array(described: dict[str, Any]) -> bool:
    """Whether this is what `observing.plain` makes of an array."""
    return described.keys() == {"type", "shape", ""}


def _of_arrays(
    expected: dict[str, Any], found: dict[str, Any], within: Tolerance, path: str
) -> list[str]:
    said = [f"{each['type']} {each['shape']}" for each in (expected, found)]
    if said[0] != said[1]:
        return [f"{path}: {said[0]} -> {said[1]}"]
    if expected == found or "float" not in said[0]:
        below = f"{path}." if path else ""
        return _of_lists([expected[""]], [found[""]], (("*", within),), below)
    values, others = np.array(expected[""], float), np.array(found[""], float)
    finite = np.isfinite(values)
    largest = np.max(np.abs(values), initial=0.0, where=finite)
    allowed = within.relative * (largest if within.of_largest else np.abs(values))
    apart = np.abs(others - values)
    if np.array_equal(values[~finite], others[~finite], equal_nan=True) and np.all(
        (apart <= allowed + within.absolute)[finite]
    ):
        return []
    apart_most = np.max(apart, initial=0.0, where=finite)
    return [f"{path}: differs by {apart_most:.2e}, its scale is {largest:.2e}"]


def _of_dicts(
    expected: dict[str, Any], found: dict[str, Any], tolerances: Tolerances, path: str
) -> list[str]:
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        below = f"{path}.{key}" if path else key
        if key not in found:
            lines.append(f"{below}: -{short(expected[key])}")
        elif key not in expected:
            lines.append(f"{below}: +{short(found[key])}")
        else:
            lines += differences(expected[key], found[key], tolerances, below)
    return lines


def _same(expected: Any, found: Any, tolerances: Tolerances, path: str) -> bool:
    """Whether nothing differs: it stops at the first that does, which `differences` cannot."""
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(
            _same(one, other, tolerances, path) for one, other in zip(expected, found, strict=True)
        )
    if isinstance(expected, dict) and isinstance(found, dict) and not is_array(expected):
        return expected.keys() == found.keys() and all(
            _same(expected[key], found[key], tolerances, f"{path}.{key}" if path else key)
            for key in expected
        )
    return not differences(expected, found, tolerances, path)


def _of_lists(
    expected: list[Any], found: list[Any], tolerances: Tolerances, path: str
) -> list[str]:
    """Items that only one of the lists has at their place."""

    def same(one: Any, other: Any) -> bool:
        return _same(one, other, tolerances, path)

    if len(expected) == len(found) and all(map(same, expected, found)):
        return []
    keys: list[Any] = []

    def number(item: Any) -> int:
        for i, known in enumerate(keys):
            if same(known, item):
                return i
        keys.append(item)
        return len(keys) - 1

    left, right = [number(item) for item in expected], [number(item) for item in found]
    lines = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            lines += [f"{path}: -{short(item)}" for item in expected[a:b]]
            lines += [f"{path}: +{short(item)}" for item in found[c:d]]
    return lines


def equal(expected: Any, found: Any, within: Tolerance) -> bool:
    """Whether two leaves are equal; bool, int and float are told apart."""
    if type(expected) is not type(found):
        return False
    if isinstance(expected, float):
        return _close(expected, found, within)
    if isinstance(expected, str):
        return expected == found or _texts_equal(_with_step_of(found, expected), found, within)
    return bool(expected == found)


def _with_step_of(found: str, expected: str) -> str:
    """The original's line of a loss, with our step where its step is the next one.

    It reads the step in the run that increments it, mostly before and now and then after that.
    """
    ours, theirs = _STEP.search(found), _STEP.search(expected)
    if ours and theirs and int(theirs[0]) == int(ours[0]) + 1:
        return _STEP.sub(ours[0], expected)
    return expected


def says_more(expected: str, found: str) -> bool:
    """Whether our text of an error has all the original's words, and more around them."""
    words = expected.strip().rstrip(".")
    return bool(words) and words in found


def _close(expected: float, found: float, within: Tolerance) -> bool:
    if expected == found or (math.isnan(expected) and math.isnan(found)):
        return True
    if math.isinf(expected):
        return False
    return abs(found - expected) <= within.relative * abs(expected) + within.absolute


def _texts_equal(expected: str, found: str, within: Tolerance) -> bool:
    if _NUMBER.split(expected) != _NUMBER.split(found):
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(found), strict=True)
    return all(
        _close(float(a), float(b), within) and abs(len(a) - len(b)) <= DIGITS for a, b in pairs
    )


def short(item: Any) -> str:
    text = item if isinstance(item, str) else repr(item)
    return text if len(text) < 400 else text[:397] + "..."
