"""Features whose keys cannot be sorted, such as names beside numbers.

TensorFlow sorts the keys of a dict that goes through a dataset. Tensors that an input_fn returned
never went through one before, so model_fn has to get them by the keys that they had.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class _Key(str):
    """Stands for a key among others that it cannot be compared with."""

    original: Hashable


def sortable(features: Any) -> Any:
    """`features` with keys that can be sorted; as it is where they can be."""
    if not isinstance(features, dict):
        return features
    try:
        sorted(features)
    except TypeError:
        return {_key(key): value for key, value in features.items()}
    return features


def original(features: Any) -> Any:
    """`features` with the keys that `sortable` has replaced."""
    if not isinstance(features, dict) or not any(isinstance(key, _Key) for key in features):
        return features
    return {key.original: value for key, value in features.items()}


def _key(key: Hashable) -> _Key:
    made = _Key(f"{type(key).__name__} {key!r}")
    made.original = key
    return made
