"""Replaces functions and classes of TensorFlow, Keras and Python, and puts them back.

Several threads may train, evaluate and predict at once, and end in any order. So the first
replacement of a name installs a function that calls the calling thread's replacement, and the last
one restores the original. Replacements of one name build on each other, and may end in any order.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

Function = Callable[..., Any]


class _Chain:
    """Replacements of a function, each made of the one before it; `function` is the last."""

    def __init__(self, original: Function):
        self._original = original
        self._made: list[tuple[Function, Function]] = []

    @property
    def function(self) -> Function:
        return self._made[-1][1] if self._made else self._original

    @contextlib.contextmanager
    def with_one_more(self, function: Function) -> Iterator[None]:
        self._add(function)
        try:
            yield
        finally:
            self._remove(function)

    def _add(self, function: Function) -> None:
        self._made.append((function, functools.partial(function, self.function)))

    def _remove(self, function: Function) -> None:
        """Removes a replacement, and makes later ones anew, without it."""
        functions = [each for each, _ in self._made]
        place = functions.index(function)
        del self._made[place:]
        for later in functions[place + 1 :]:
            self._add(later)


class _Patch:
    """A name that threads may replace; `users` counts the replacements in all threads."""

    def __init__(self, owner: Any, name: str):
        self.original: Function = getattr(owner, name)
        self.users = 0
        self.of_all_threads = _Chain(self.original)
        self._here = threading.local()

        @functools.wraps(self.original)
        def function(*args: Any, **kwargs: Any) -> Any:
            chain = getattr(self._here, "chain", self.of_all_threads)
            return chain.function(*args, **kwargs)

        self.function = function

    def of_this_thread(self) -> _Chain:
        def before(*args: Any, **kwargs: Any) -> Any:
            return self.of_all_threads.function(*args, **kwargs)

        found: _Chain = vars(self._here).setdefault("chain", _Chain(before))
        return found


_lock = threading.RLock()  # Python's garbage collector may end a replacement in any place
_patches: dict[tuple[int, str], _Patch] = {}


@contextlib.contextmanager
def patched(
    owner: Any, name: str, function: Function, *, in_all_threads: bool = False
) -> Iterator[None]:
    """A context in which this thread, or each one, has another function as `owner.name`.

    `function` is called with the function that there is now, and then the arguments.
    """
    key = (id(owner), name)
    with _lock:
        patch = _patches.get(key)
        if patch is None:
            patch = _patches[key] = _Patch(owner, name)
            setattr(owner, name, patch.function)
        patch.users += 1
    try:
        chain = patch.of_all_threads if in_all_threads else patch.of_this_thread()
        with chain.with_one_more(function):
            yield
    finally:
        with _lock:
            patch.users -= 1
            if not patch.users:
                setattr(owner, name, patch.original)
                del _patches[key]
