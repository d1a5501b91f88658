"""Attributes of modules and classes, replaced in all threads while a dry run lasts."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

Function = Callable[..., Any]


@contextlib.contextmanager
def replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    before = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextlib.contextmanager
def wrapped(owner: Any, name: str, around: Callable[[Function], Function]) -> Iterator[None]:
    """Within, `around(f)` replaces the function `f` that `owner.name` was."""
    before = getattr(owner, name)
    with replaced(owner, **{name: functools.wraps(before)(around(before))}):
        yield
