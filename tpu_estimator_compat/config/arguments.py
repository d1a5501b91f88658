"""Checks of arguments that many public calls take, with one wording.

Python's own errors ("'Hook' object is not iterable") would come later and name no argument. These
errors name the argument, its value and what to write.
"""

from __future__ import annotations

import collections.abc
import numbers
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_steps(value: Any, name: str) -> None:
    """Raises TypeError or ValueError unless `value` is None or a positive number.

    Fractions and infinity are accepted: scripts written for Python 2 divide numbers of steps. With
    a limit of 2.5 steps, the third step is the last.
    """
    if value is None:
        return
    if not _is_count(value):
        raise TypeError(f"{name} must be a number, got {type(value)}: {value!r}")
    if not value > 0:
        raise ValueError(f"Must specify {name} > 0, given: {value}")


def _is_count(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, float | np.floating):
        return True
    try:
        operator.index(value)  # NumPy's integers and scalar tensors have an index, too
    except TypeError:
        return False
    return True


def check_number(value: Any, name: str, least: float | None = None) -> None:
    if not isinstance(value, numbers.Real | np.number):
        raise TypeError(f"{name} must be a number, got {type(value)}: {value!r}")
    if least is not None and value < least:
        raise ValueError(f"Must specify {name} >= {least}, given: {value}")


def check_type(value: Any, name: str, types: type | tuple[type, ...], wanted: str) -> None:
    """Raises TypeError unless `value` is one of `types`, which the message calls `wanted`."""
    if not isinstance(value, types):
        raise TypeError(f"{name} must be {wanted}, got {type(value)}: {value!r}")


def check_path(value: Any, name: str) -> None:
    check_type(value, name, (str, bytes, os.PathLike), "a path (str or os.PathLike)")


def check_callable(value: Any, name: str, advice: str) -> None:
    if not callable(value):
        raise TypeError(f"`{name}` must be callable, given: {value!r}. {advice}")


def check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(
            f"`input_fn` must be callable, given: {input_fn}. Give a function that makes and "
            "returns the data: a tf.data.Dataset, features, or (features, labels)."
        )


def as_list(values: Iterable[Any] | None, name: str, element: str) -> list[Any]:
    """A list of an argument's values, empty for None; `element` is their type, for the message."""
    if values is None:
        return []
    if not isinstance(values, collections.abc.Iterable):
        raise TypeError(
            f"{name} must be a list of {element}, given: {values!r}. Write {name}=[...], even for "
            "a single one."
        )
    return list(values)


def all_of(kind: Any, given: Iterable[Any] | None, rule: str) -> list[Any]:
    """The given values as a list; raises TypeError, beginning with `rule`, if one is no `kind`."""
    found = list(given or [])
    for each in found:
        if not isinstance(each, kind):
            raise TypeError(f"{rule}, given: {each}")
    return found


def check_params(params: Any, *, settable: bool) -> None:
    """Raises TypeError unless `params` are a dict, an object such as HParams, or None.

    With `settable`, the object must accept new items, since `batch_size` and the like are added.
    """
    if params is None or isinstance(params, collections.abc.MutableMapping):
        return
    if hasattr(params, "set_hparam"):
        return
    fits = not isinstance(params, _NAMELESS) or hasattr(params, "_fields")
    if settable:
        fits = fits and hasattr(params, "__setitem__") and hasattr(params, "__contains__")
    if not fits:
        raise TypeError(
            f"params must be a dict of hyperparameters, got {type(params)}: {params!r}. Give "
            'params={"name": value}; model_fn takes them as its argument `params`.'
        )


_NAMELESS = (str, bytes, numbers.Number, np.generic, np.ndarray, list, tuple, set, frozenset)
