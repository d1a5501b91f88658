"""`tf.contrib.training.HParams`: typed hyperparameters, set from a string or a dict."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

_CLAUSE = re.compile(
    r"(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:(?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])(?:$|,\s*)"
)
_TRUTH = {"true": True, "True": True, "false": False, "False": False}


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Values by name from text such as `rate=0.1,units=[64,32],depth[1]=16`.

    `type_map` has the type of each name; for a list, that of its elements. `name[index]=value`
    clauses become a dict of index to value.
    """
    found: dict[str, Any] = {}
    position = 0
    while position < len(values):
        clause = _CLAUSE.match(values, position)
        if not clause:
            raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
        position = clause.end()
        name = clause["name"]
        if name in type_map:
            _take(found, clause, type_map[name], values)
        elif not ignore_unknown:
            raise ValueError(f"Unknown hyperparameter type for {name}")
    return found


def _take(found: dict[str, Any], clause: re.Match[str], kind: type, values: str) -> None:
    name, index = clause["name"], clause["index"]
    listed = clause["value"] is None
    text = clause["values" if listed else "value"]
    if listed and index is not None:
        raise ValueError("Assignment of a list to a list index.")
    try:
        parts = [part for part in re.split("[ ,]", text) if part] if listed else [text]
        value: Any = [_parsed(kind, part) for part in parts]
    except ValueError:
        raise ValueError(
            f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}' in "
            f"{values}"
        ) from None
    value = value if listed else value[0]
    taken = found.get(name)
    if index is None:
        if name in found:
            raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
        found[name] = value
    elif name in found and (not isinstance(taken, dict) or int(index) in taken):
        raise ValueError(f"Multiple assignments to variable '{name}[{index}]' in {values}")
    else:
        found.setdefault(name, {})[int(index)] = value


def _parsed(kind: type, text: str) -> Any:
    if kind is not bool:
        return kind(text)
    return _TRUTH[text] if text in _TRUTH else bool(int(text))


def _cast(name: str, kind: Any, value: Any) -> Any:
    """Casts a value; ValueError for a cast that may lose information, as from float to int."""
    if type(value) is kind or issubclass(kind, type(None)):
        return value
    text = issubclass(kind, str | bytes) and not isinstance(value, str | bytes)
    truth = issubclass(kind, bool) != isinstance(value, bool)
    whole = issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral)
    number = issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number)
    if text or truth or whole or number:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


class HParams:
    """Hyperparameters as attributes; their first values determine their types.

    `hparam_def` is refused: its protocol buffer was a part of `tf.contrib`.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any):
        if hparam_def:
            raise NotImplementedError(
                "HParams(hparam_def=...) needs a protocol buffer of tf.contrib. Keep "
                "hyperparameters as JSON: HParams.to_json() and HParams.parse_json()."
            )
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def __getattr__(self, name: str) -> Any:
        # For type checkers: names of hyperparameters are not known statically.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter; ValueError for a name in use, or an empty list."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        several = isinstance(value, list | tuple)
        if several and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0] if several else value), several)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets a hyperparameter.

        Raises:
          KeyError: no hyperparameter has this name.
          ValueError: the value is of another type, or only one of old and new value is a list.
        """
        kind, several = self._hparam_types[name]
        if isinstance(value, list):
            if not several:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_cast(name, kind, each) for each in value])
        elif several:
            raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
        else:
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if it exists."""
        if name in self._hparam_types:
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Sets values from text such as `rate=0.1,units=[64,32]`; returns this object."""
        types = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, types))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets values from a dict; returns this object. Errors are those of `set_hparam`."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    set_from_map = override_from_dict

    def parse_json(self, values_json: str) -> HParams:
        """Sets values from a JSON object; returns this object. Errors are those of `set_hparam`."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as a JSON object; the arguments are those of `json.dumps`."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a hyperparameter, or `default` if it does not exist.

        ValueError if `default` is neither None nor of the hyperparameter's type.
        """
        if key not in self._hparam_types:
            return default
        kind, several = self._hparam_types[key]
        if default is not None:
            if several != isinstance(default, list):
                shown = f"list<{kind}>" if several else str(kind)
                raise ValueError(
                    f"Hparam '{key}' of type '{shown}' is incompatible with default={default}"
                )
            for each in default if several else [default]:
                _cast(key, kind, each)
        return getattr(self, key)

    def set_model_structure(self, model_structure: Any) -> None:
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        return self._model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"
