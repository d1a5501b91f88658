"""Feature dicts whose keys cannot be sorted, such as names beside numbers.

TensorFlow sorts the keys of a dict that goes through a dataset. Tensors that an input_fn returned
did not go through one in the original, so model_fn must get them by their own keys.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class _Key(str):
    """A sortable replacement of a key that cannot be compared with other keys."""

    original: Hashable


def sortable(features: Any) -> Any:
    """`features` with keys that can be sorted; unchanged where they can be already."""
    if not isinstance(features, dict):
        return features
    try:
        sorted(features)
    except TypeError:
        return {_key(key): value for key, value in features.items()}
    return features


def original(features: Any) -> Any:
    if not isinstance(features, dict) or not any(isinstance(key, _Key) for key in features):
        return features
    return {key.original: value for key, value in features.items()}


def _key(key: Hashable) -> _Key:
    made = _Key(f"{type(key).__name__} {key!r}")
    made.original = key
    return made
