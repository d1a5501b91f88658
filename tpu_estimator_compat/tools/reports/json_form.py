"""Converts trees of frozen dataclasses to JSON, and back by the types of their fields."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from typing import Any


def text(value: Any) -> str:
    return json.dumps(encoded(value), indent=1, allow_nan=False)


def parsed(given: str) -> dict[str, Any]:
    """The object that JSON text holds; ValueError for other text."""
    found = json.loads(given)
    if not isinstance(found, dict):
        raise ValueError(f"Expected a JSON object, got {type(found).__name__}.")
    return found


def encoded(value: Any) -> Any:
    """A tree of dataclasses as JSON values; floats that are not finite as strings."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {f.name: encoded(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): encoded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encoded(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def decoded(kind: Any, value: Any) -> Any:
    """Inverts `encoded`: the value of type `kind`; ValueError where `value` has another form.

    `kind` is a dataclass, an enum, `tuple[T, ...]`, `dict[str, T]`, `T | None`, or a plain type.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        [inner] = [a for a in arguments if a is not types.NoneType]
        return None if value is None else decoded(inner, value)
    if origin is tuple:
        return tuple(decoded(arguments[0], item) for item in _checked(value, list))
    if origin is dict:
        return {key: decoded(arguments[1], v) for key, v in _checked(value, dict).items()}
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, _checked(value, dict))
    if issubclass(kind, enum.Enum):
        return kind(value)
    if kind is float and (isinstance(value, int) or value in _NOT_FINITE):
        return float(value)
    return _checked(value, kind)


def _dataclass(kind: Any, fields: dict[str, Any]) -> Any:
    types_ = _field_types(kind)
    wanted = {f.name for f in dataclasses.fields(kind) if _is_required(f)}
    if not wanted <= fields.keys() <= types_.keys():
        raise ValueError(
            f"Expected the fields of {kind.__name__} ({', '.join(types_)}), got "
            f"{', '.join(fields) or 'none'}."
        )
    return kind(**{name: decoded(types_[name], value) for name, value in fields.items()})


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"Expected {kind.__name__}, got {type(value).__name__}: {value!r:.80}")
    return value


_NOT_FINITE = ("nan", "inf", "-inf")
