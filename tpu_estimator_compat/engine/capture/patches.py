"""Replaces functions of TensorFlow and Keras for the thread that builds a graph.

Several threads may train, evaluate and predict at once, and end in any order. So the first thread
installs a function that calls the calling thread's replacement. The last thread restores the
original.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

Function = Callable[..., Any]


class _Patch:
    """A function that threads may replace; `users` counts the replacements in all threads."""

    def __init__(self, owner: Any, name: str):
        self.original: Function = getattr(owner, name)
        self.users = 0
        self._here = threading.local()

        @functools.wraps(self.original)
        def function(*args: Any, **kwargs: Any) -> Any:
            return self.current()(*args, **kwargs)

        self.function = function

    def current(self) -> Function:
        here: list[Function] = getattr(self._here, "functions", [])
        return here[-1] if here else self.original

    @contextlib.contextmanager
    def replaced(self, function: Function) -> Iterator[None]:
        here: list[Function] = vars(self._here).setdefault("functions", [])
        here.append(function)
        try:
            yield
        finally:
            here.pop()


_lock = threading.Lock()
_patches: dict[tuple[int, str], _Patch] = {}


@contextlib.contextmanager
def patched(owner: Any, name: str, make: Callable[[Function], Function]) -> Iterator[None]:
    """A context in which this thread has another function as `owner.name`.

    `make` takes the function that the thread has now, and returns its replacement.
    """
    key = (id(owner), name)
    with _lock:
        if key not in _patches:
            _patches[key] = _Patch(owner, name)
            setattr(owner, name, _patches[key].function)
        patch = _patches[key]
        patch.users += 1
    try:
        with patch.replaced(make(patch.current())):
            yield
    finally:
        with _lock:
            patch.users -= 1
            if not patch.users:
                setattr(owner, name, patch.original)
                del _patches[key]
