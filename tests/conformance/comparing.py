"""Differences between two observations, a line each, that a row of expected differences can name.

Numbers are equal to 1e-5 of their size, also within texts; there they have about as many digits,
too, so that a float64 printed where the original printed a float32 shows.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Any

TOLERANCE = 1e-5
DIGITS = 3  # the shortest text of a float32 has 7 to 9 digits, that of a float64 up to 17

_STEP = re.compile(r"(?<=, step = )\d+")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")


def differences(original: Any, ours: Any, path: str = "") -> list[str]:
    """What differs, as lines `path: original -> ours`, or `path: -item` and `path: +item`."""
    if isinstance(original, dict) and isinstance(ours, dict):
        found = []
        for key in sorted(original.keys() | ours.keys()):
            below = f"{path}.{key}" if path else key
            if key not in ours:
                found.append(f"{below}: -{short(original[key])}")
            elif key not in original:
                found.append(f"{below}: +{short(ours[key])}")
            else:
                found += differences(original[key], ours[key], below)
        return found
    if isinstance(original, list) and isinstance(ours, list):
        return _of_lists(original, ours, path)
    if path == "error.text" and says_more(original, ours):
        return []
    return [] if equal(original, ours) else [f"{path}: {short(original)} -> {short(ours)}"]


def _of_lists(original: list[Any], ours: list[Any], path: str) -> list[str]:
    """Items that only one of the lists has at their place."""
    keys: list[Any] = []

    def number(item: Any) -> int:
        for i, known in enumerate(keys):
            if not differences(known, item):
                return i
        keys.append(item)
        return len(keys) - 1

    left, right = [number(item) for item in original], [number(item) for item in ours]
    found = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += [f"{path}: -{short(item)}" for item in original[a:b]]
            found += [f"{path}: +{short(item)}" for item in ours[c:d]]
    return found


def equal(original: Any, ours: Any) -> bool:
    """Whether two leaves are equal; bool, int and float are told apart."""
    if type(original) is not type(ours):
        return False
    if isinstance(original, float):
        return _close(original, ours)
    if isinstance(original, str):
        return original == ours or _texts_equal(_with_step_of(ours, original), ours)
    return bool(original == ours)


def _with_step_of(ours: str, original: str) -> str:
    """The original's line of a loss, with our step where its step is the next one.

    It reads the step in the run that increments it, mostly before and now and then after that.
    """
    found, wanted = _STEP.search(original), _STEP.search(ours)
    if found and wanted and int(found[0]) == int(wanted[0]) + 1:
        return _STEP.sub(wanted[0], original)
    return original


def says_more(original: str, ours: str) -> bool:
    """Whether our text of an error has all the original's words, and more around them."""
    words = original.strip().rstrip(".")
    return bool(words) and words in ours


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=TOLERANCE) or a == b or (math.isnan(a) and math.isnan(b))


def _texts_equal(original: str, ours: str) -> bool:
    if _NUMBER.split(original) != _NUMBER.split(ours):
        return False
    pairs = zip(_NUMBER.findall(original), _NUMBER.findall(ours), strict=True)
    return all(_close(float(a), float(b)) and abs(len(a) - len(b)) <= DIGITS for a, b in pairs)


def short(item: Any) -> str:
    text = item if isinstance(item, str) else repr(item)
    return text if len(text) < 400 else text[:397] + "..."
