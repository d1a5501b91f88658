"""Weights files of an estimator's Keras model: its variables by their TF1 names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
from tensorflow.compat.v1 import logging


def save(variables: Mapping[str, keras.Variable], store: Any) -> None:
    """Puts `variables`, by TF1 name, in the store of a weights file."""
    for path, variable in variables.items():
        store[_key(path)] = variable


def load(variables: Mapping[str, keras.Variable], store: Any) -> None:
    """Gives `variables`, by TF1 name, the values that the store of a weights file has.

    Raises:
      ValueError: a trainable variable is not in the file, or has another shape there.
    """
    keys = set(store.keys())
    missing = [path for path in variables if _key(path) not in keys]
    if lost := [path for path in missing if variables[path].trainable]:
        raise ValueError(
            f"The weights file has no values for {lost}. It has "
            f"{sorted(key.replace(':', '/') for key in keys)}."
        )
    if missing:
        logging.warning("Not in the weights file, and left as they are: %s", missing)
    for path, variable in variables.items():
        if path not in missing:
            variable.assign(store[_key(path)])


def _key(path: str) -> str:
    """A variable's name in a weights file, where `/` makes groups; TF1 names have no `:`."""
    return path.replace("/", ":")
