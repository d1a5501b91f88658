"""Golden values: the leaves of a nested value, as JSON has them, and how two values differ."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Row = tuple[str, str, str, str]
"""Of the table of differences: a path, what is stored there, what is now, the relative difference.
"""

Leaf = list[Any]
"""A number, string or array: its dtype and shape, such as "float32[2,3]", and its elements.

An array with more than `MOST_ELEMENTS` elements has a summary: " summary" after the shape, then for
floats `_SUMMARIES`, for other dtypes a hash of all elements; then some elements.
"""

MOST_ELEMENTS = 200
"""An array with more elements is stored as a summary."""

_MOST_LEAVES = 500
_SAMPLES = 16
_SUMMARIES = ("finite elements", "NaN elements", "mean", "weighted mean", "std", "min", "max")
_NUMBERS = re.compile("bool|u?int|float|bfloat|complex")
_FLOATS = re.compile("float|bfloat|complex")
_PLAIN_KEY = re.compile(r"[\w/:-]+")
_MOST_ROWS = 30
_WIDEST = 60  # characters of a column
_ROUNDING = 1e-9  # of a mean, of whichever dtype, on another processor


def leaves(value: Any) -> dict[str, Leaf]:
    """The leaves of a nested value, by their paths, such as `predictions[0].classes`."""
    found: dict[str, Leaf] = {}
    for path, leaf in _walk("", value):
        if path in found:
            raise ValueError(f"the value has two parts at {path}: their keys are written alike")
        found[path or "value"] = leaf
    if len(found) > _MOST_LEAVES:
        raise ValueError(
            f"the value has {len(found)} parts, and a golden file has at most {_MOST_LEAVES}. "
            "Stack those that are alike to arrays, of which summaries are stored."
        )
    return found


def _walk(path: str, value: Any) -> Iterator[tuple[str, Leaf]]:
    children = _children(value)
    if children is None:
        yield path, _leaf(path, value)
    elif not children:
        yield path, ["dict" if isinstance(value, Mapping) else "list"]
    else:
        for key, child in children:
            yield from _walk(_joined(path, key), child)


def _children(value: Any) -> list[tuple[Any, Any]] | None:
    """Keys and parts of a container; None for a leaf. Keys of a list are in a tuple of one."""
    if hasattr(value, "as_dict"):
        value = value.as_dict()
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple) and {*map(type, value)} not in ({int}, {float}):
        return [((index,), child) for index, child in enumerate(value)]
    return None


def _joined(path: str, key: Any) -> str:
    if isinstance(key, tuple) and len(key) == 1:
        return f"{path}[{key[0]}]"
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"


def _leaf(path: str, value: Any) -> Leaf:
    if value is None:
        return ["None"]
    name = type(value).__name__
    if isinstance(value, list | tuple):
        name = f"{type(value[0]).__name__}s"
    elif type(value) not in (bool, int, float, complex, str, bytes):
        if not hasattr(value, "__array__"):
            raise TypeError(
                f"{path or 'the value'} is a {name}. Golden values are numbers, strings, bytes, "
                "bools, None, arrays, and dicts, lists and tuples of them."
            )
        value = np.asarray(value)
        name = _dtype_name(path, value)
    array = np.asarray(value, None if _NUMBERS.match(name) else object)
    shape = f"[{','.join(map(str, array.shape))}]" if array.ndim else ""
    elements = _elements(name, array)
    if array.size <= MOST_ELEMENTS:
        return [name + shape, *elements]
    sample = [elements[i] for i in np.linspace(0, array.size - 1, _SAMPLES).astype(int)]
    return [f"{name}{shape} summary", *_summary(name, array, elements), *sample]


def _dtype_name(path: str, array: np.ndarray) -> str:
    if array.dtype.kind == "U":
        return "str"
    if array.dtype.kind == "S":
        return "bytes"
    if _NUMBERS.match(array.dtype.name):
        return array.dtype.name
    kinds = {type(element).__name__ for element in array.ravel()}
    if not kinds <= {"str", "bytes"} or len(kinds) > 1:
        raise TypeError(
            f"{path or 'the value'} is an array of {', '.join(sorted(kinds))} objects: only those "
            "of strings, or of bytes, can be stored"
        )
    return kinds.pop() if kinds else "object"


def _elements(name: str, array: np.ndarray) -> list[Any]:
    """The elements as JSON has them: floats with no more digits than their dtype has."""
    if name.startswith(("complex", "bytes")):
        return [repr(element) for element in array.ravel().tolist()]
    if _FLOATS.match(name):
        return [float(str(element)) for element in array.ravel()]
    return array.ravel().tolist()


def _summary(name: str, array: np.ndarray, elements: list[Any]) -> list[Any]:
    if not _FLOATS.match(name):
        return [hashlib.sha256(" ".join(map(repr, elements)).encode()).hexdigest()]
    numbers = np.abs(array) if name.startswith("complex") else array
    numbers = numbers.astype(np.float64).ravel()
    is_finite = np.isfinite(numbers)
    counts = [int(is_finite.sum()), int(np.isnan(numbers).sum())]
    if not is_finite.any():
        return [*counts, *[math.nan] * len(_SUMMARIES[2:])]
    # The other numbers are the same for elements in another order.
    weighted = np.mean(np.where(is_finite, numbers, 0.0) * np.cos(np.arange(numbers.size)))
    finite = numbers[is_finite]
    found = (finite.mean(), weighted, finite.std(), finite.min(), finite.max())
    return [*counts, *(float(f"{number:.9g}") for number in found)]


def differences(
    stored: Mapping[str, Leaf], now: Mapping[str, Leaf], rtol: float, atol: float
) -> list[Row]:
    """The differences beyond the tolerances, in the order of the paths."""
    found = []
    for path in dict.fromkeys([*stored, *now]):
        if path not in now:
            found.append((path, _text(stored[path]), "missing", ""))
        elif path not in stored:
            found.append((path, "missing", _text(now[path]), ""))
        else:
            found += _between(path, stored[path], now[path], rtol, atol)
    return found


def _text(leaf: Leaf) -> str:
    return " ".join(map(str, leaf))


def _between(path: str, stored: Leaf, now: Leaf, rtol: float, atol: float) -> list[Row]:
    if stored[0] != now[0] or len(stored) != len(now):
        return [(path, _text(stored), _text(now), "")]
    kind, *ones = stored
    others = now[1:]
    apart = [i for i, pair in enumerate(zip(ones, others, strict=True)) if pair[0] != pair[1]]
    if apart and _FLOATS.match(kind):
        a, b = (np.array([complex(number) for number in numbers]) for numbers in (ones, others))
        limits = _limits(kind, a, rtol, atol)
        apart = list(np.flatnonzero(~np.isclose(b, a, *limits, equal_nan=True)))
    if not apart:
        return []
    worst = max(apart, key=lambda i: _relative(ones[i], others[i]))
    where = path + _place(kind, worst)
    if len(apart) > 1:
        where += f" (and {len(apart) - 1} more of {len(ones)})"
    relative = _relative(ones[worst], others[worst])
    shown = "" if math.isinf(relative) else f"{relative:.2g}"
    return [(where, str(ones[worst]), str(others[worst]), shown)]


def _limits(kind: str, stored: np.ndarray, rtol: float, atol: float) -> tuple[Any, Any]:
    """The tolerances of each number: of a summary, counts are exact, and means near zero differ."""
    if not kind.endswith(" summary"):
        return rtol, atol
    largest = float(np.max(np.abs(stored[5:7])))
    relative, absolute = (np.full(stored.shape, limit) for limit in (rtol, atol))
    relative[:5] = absolute[:2] = 0.0
    absolute[2:5] += max(rtol, _ROUNDING) * largest
    return relative, absolute


def _place(kind: str, index: int) -> str:
    if kind.endswith(" summary"):
        names = _SUMMARIES if _FLOATS.match(kind) else ("hash of all",)
        return f": {names[index]}" if index < len(names) else f": sample {index - len(names)}"
    if "[" not in kind:
        return ""
    shape = tuple(map(int, kind[kind.index("[") + 1 : -1].split(",")))
    return f"[{','.join(map(str, np.unravel_index(index, shape)))}]"


def _relative(one: Any, other: Any) -> float:
    """|now - stored| / |stored|; infinite where that is no finite number, so it comes first."""
    try:
        a, b = complex(one), complex(other)
    except ValueError:
        return math.inf
    difference = abs(b - a)
    return difference / abs(a) if a and math.isfinite(difference) else math.inf


def table(differences: Sequence[Row]) -> str:
    """The differences in columns: path, stored, now, relative difference."""
    rows = [("path", "stored", "now", "relative difference"), *differences[:_MOST_ROWS]]
    cells = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    if left := len(differences) - _MOST_ROWS:
        lines += [f"and {left} more"] if left > 0 else []
    return "\n".join(f"  {line}" for line in lines)


def _cut(cell: str) -> str:
    return cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 3]}..."
