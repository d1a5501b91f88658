"""Golden values as lines of text: what a nested value has, and how two of them differ."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

MOST_ELEMENTS = 200
"""An array with more elements is stored as a summary."""

_MOST_LEAVES = 500
_SAMPLES = 16
_SUMMARIES = ("finite elements", "NaN elements", "mean", "weighted mean", "std", "min", "max")
_PLAIN_TYPES = (bool, int, float, complex, str, bytes)
_NUMBERS = re.compile("bool|u?int|float|bfloat|complex")
_FLOATS = re.compile("float|bfloat|complex")
_SHORT_LIST = 8
_PLAIN_KEY = re.compile(r"[\w/:-]+")
_ROUNDING = 1e-9  # of a mean, of whichever dtype, on another processor


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A number, string or array.

    Attributes:
      kind: its dtype and shape, such as "float32" or "float32[2,3]"; ends in " summary" for an
        array with more than `MOST_ELEMENTS` elements.
      tokens: its elements, each as Python or its dtype writes it. Of a summary: `_SUMMARIES` for
        floats, a hash of all elements for other dtypes; then some elements.
    """

    kind: str
    tokens: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.kind, *self.tokens))


@dataclasses.dataclass(frozen=True)
class Difference:
    """A line of the table of differences."""

    path: str
    stored: str
    now: str
    relative: str = ""


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
        yield path, Leaf("dict" if isinstance(value, Mapping) else "list", ())
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
    if isinstance(value, list | tuple) and not _is_list_of_numbers(value):
        return [((index,), child) for index, child in enumerate(value)]
    return None


def _is_list_of_numbers(value: Sequence[Any]) -> bool:
    kinds = {type(element) for element in value}
    return len(value) > _SHORT_LIST and kinds in ({int}, {float})


def _joined(path: str, key: Any) -> str:
    if isinstance(key, tuple) and len(key) == 1:
        return f"{path}[{key[0]}]"
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]".replace("=", "\\x3d")  # the first `=` of a line ends its path


def _leaf(path: str, value: Any) -> Leaf:
    if value is None:
        return Leaf("None", ())
    if type(value) in _PLAIN_TYPES:
        return Leaf(type(value).__name__, (repr(value),))
    if isinstance(value, list | tuple):
        return _array_leaf(f"{type(value[0]).__name__}s", np.asarray(value), map(repr, value))
    if not hasattr(value, "__array__"):
        raise TypeError(
            f"{path or 'the value'} is a {type(value).__name__}. Golden values are numbers, "
            "strings, bytes, bools, None, arrays, and dicts, lists and tuples of them."
        )
    array = np.asarray(value)
    return _array_leaf(_dtype_name(path, array), array, map(_token, array.ravel()))


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


def _token(element: Any) -> str:
    if isinstance(element, str | bytes):
        return repr(element.item() if isinstance(element, np.generic) else element)
    return str(element)


def _array_leaf(name: str, array: np.ndarray, tokens: Iterator[str]) -> Leaf:
    shape = f"[{','.join(map(str, array.shape))}]" if array.ndim else ""
    if array.size <= MOST_ELEMENTS:
        return Leaf(name + shape, tuple(tokens))
    every = list(tokens)
    sample = [every[i] for i in np.linspace(0, array.size - 1, _SAMPLES).astype(int)]
    return Leaf(f"{name}{shape} summary", (*_summary(name, array, every), *sample))


def _summary(name: str, array: np.ndarray, tokens: list[str]) -> list[str]:
    if not _FLOATS.match(name):
        return [hashlib.sha256(" ".join(tokens).encode()).hexdigest()]
    numbers = np.abs(array) if name.startswith("complex") else array
    numbers = numbers.astype(np.float64).ravel()
    is_finite = np.isfinite(numbers)
    counts = [str(is_finite.sum()), str(np.isnan(numbers).sum())]
    if not is_finite.any():
        return [*counts, *["nan"] * len(_SUMMARIES[2:])]
    # The other numbers are the same for elements in another order.
    weighted = np.mean(np.where(is_finite, numbers, 0.0) * np.cos(np.arange(numbers.size)))
    finite = numbers[is_finite]
    found = (finite.mean(), weighted, finite.std(), finite.min(), finite.max())
    return [*counts, *(f"{number:.9g}" for number in found)]


def differences(
    stored: Mapping[str, Leaf], now: Mapping[str, Leaf], rtol: float, atol: float
) -> list[Difference]:
    """The differences beyond the tolerances, in the order of the paths."""
    found = []
    for path in dict.fromkeys([*stored, *now]):
        if path not in now:
            found.append(Difference(path, str(stored[path]), "missing"))
        elif path not in stored:
            found.append(Difference(path, "missing", str(now[path])))
        else:
            found += _between(path, stored[path], now[path], rtol, atol)
    return found


def _between(path: str, stored: Leaf, now: Leaf, rtol: float, atol: float) -> list[Difference]:
    if stored.kind != now.kind or len(stored.tokens) != len(now.tokens):
        return [Difference(path, stored.kind, now.kind)]
    is_float = _FLOATS.match(stored.kind) is not None
    is_summary = is_float and stored.kind.endswith(" summary")
    apart = []
    for i, (one, other) in enumerate(zip(stored.tokens, now.tokens, strict=True)):
        limits = (rtol, atol) if is_float else (0.0, 0.0)
        if is_summary and i < 2:
            limits = (0.0, 0.0)
        elif is_summary and i < 5:
            largest = max(abs(_number(token)) for token in stored.tokens[5:7])
            limits = (0.0, atol + max(rtol, _ROUNDING) * largest)
        if one != other and not _is_close(one, other, *limits):
            apart.append(i)
    if not apart:
        return []
    worst = max(apart, key=lambda i: _relative(stored.tokens[i], now.tokens[i]))
    where = path + _place(stored, worst)
    if len(apart) > 1:
        where += f" (and {len(apart) - 1} more of {len(stored.tokens)})"
    one, other = stored.tokens[worst], now.tokens[worst]
    relative = _relative(one, other)
    return [Difference(where, one, other, "" if math.isinf(relative) else f"{relative:.2g}")]


def _place(leaf: Leaf, index: int) -> str:
    if leaf.kind.endswith(" summary"):
        names = _SUMMARIES if _FLOATS.match(leaf.kind) else ("hash of all",)
        named = index < len(names)
        return f": {names[index]}" if named else f": sample {index - len(names)}"
    if "[" not in leaf.kind:
        return ""
    shape = tuple(map(int, leaf.kind[leaf.kind.index("[") + 1 : -1].split(",")))
    return f"[{','.join(map(str, np.unravel_index(index, shape)))}]"


def _is_close(one: str, other: str, rtol: float, atol: float) -> bool:
    if rtol == atol == 0:
        return False  # the texts differ
    a, b = _number(one), _number(other)
    return bool(np.isclose(b, a, rtol=rtol, atol=atol, equal_nan=True))


def _relative(one: str, other: str) -> float:
    """|now - stored| / |stored|; infinite where that is no finite number, so it comes first."""
    try:
        a, b = _number(one), _number(other)
    except ValueError:
        return math.inf
    difference = abs(b - a)
    return difference / abs(a) if a and math.isfinite(difference) else math.inf


def _number(token: str) -> complex:
    return complex(token)
