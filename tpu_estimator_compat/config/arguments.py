"""Checks of arguments that many public calls take, with one wording.

Errors that Python would raise somewhere within ("'Hook' object is not iterable") are raised here
instead, with the name of the argument, its value and what to write.
"""

from __future__ import annotations

import collections.abc
import numbers
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_empty_folder(path: str) -> None:
    """Refuses a place for a new folder where there are files.

    Raises:
      FileExistsError: there are some.
    """
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise FileExistsError(f"{path} exists, and is no empty folder. Name a new folder.")


def check_steps(value: Any, name: str) -> None:
    """Refuses a number of steps that is neither None nor a positive number.

    Scripts written for Python 2 divide numbers of steps. A number with a fraction is a limit as
    good as another: the first step beyond the limit is the last one. Infinity is no limit.

    Raises:
      TypeError: the value is no number.
      ValueError: the value is zero, negative, or NaN.
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
        operator.index(value)  # NumPy's integers and scalar tensors have one, too
    except TypeError:
        return False
    return True


def check_number(value: Any, name: str, least: float | None = None) -> None:
    """Refuses what is no real number, or is below `least`.

    Raises:
      TypeError: it is no number.
      ValueError: it is too small.
    """
    if not isinstance(value, numbers.Real | np.number):
        raise TypeError(f"{name} must be a number, got {type(value)}: {value!r}")
    if least is not None and value < least:
        raise ValueError(f"Must specify {name} >= {least}, given: {value}")


def check_type(value: Any, name: str, types: type | tuple[type, ...], wanted: str) -> None:
    """Refuses what is no instance of `types`, which the message calls `wanted`.

    Raises:
      TypeError: with the name, the type and the value.
    """
    if not isinstance(value, types):
        raise TypeError(f"{name} must be {wanted}, got {type(value)}: {value!r}")


def check_path(value: Any, name: str) -> None:
    """Refuses what is no path.

    Raises:
      TypeError: neither str, bytes nor os.PathLike.
    """
    check_type(value, name, (str, bytes, os.PathLike), "a path (str or os.PathLike)")


def check_callable(value: Any, name: str, advice: str) -> None:
    """Refuses what cannot be called; `advice` says what to give.

    Raises:
      TypeError: it is not callable.
    """
    if not callable(value):
        raise TypeError(f"`{name}` must be callable, given: {value!r}. {advice}")


def check_input_fn(input_fn: Any) -> None:
    """Refuses what is no input_fn.

    Raises:
      TypeError: it is not callable.
    """
    if not callable(input_fn):
        raise TypeError(
            f"`input_fn` must be callable, given: {input_fn}. Give a function that makes and "
            "returns the data: a tf.data.Dataset, features, or (features, labels)."
        )


def as_list(values: Iterable[Any] | None, name: str, element: str) -> list[Any]:
    """A list of what an argument such as `hooks` holds; empty for None.

    Args:
      values: any iterable.
      name: its name in error messages.
      element: the type of the elements.

    Raises:
      TypeError: a single object.
    """
    if values is None:
        return []
    if not isinstance(values, collections.abc.Iterable):
        raise TypeError(
            f"{name} must be a list of {element}, given: {values!r}. Write {name}=[...], even for "
            "a single one."
        )
    return list(values)


def check_params(params: Any, *, settable: bool) -> None:
    """Refuses hyperparameters that have no names.

    Args:
      params: a dict, or an object such as HParams; None for none.
      settable: whether `batch_size` and the like will be added to it.

    Raises:
      TypeError: it is a number, text, list, set or the like; or nothing can be added to it.
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
