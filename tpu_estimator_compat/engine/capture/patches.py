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
Make = Callable[[Function], Function]


class _Chain:
    """Replacements of a function, each made of the one before it; `function` is the last."""

    def __init__(self, original: Function):
        self._original = original
        self._made: list[tuple[Make, Function]] = []

    @property
    def function(self) -> Function:
        return self._made[-1][1] if self._made else self._original

    @contextlib.contextmanager
    def with_one_more(self, make: Make) -> Iterator[None]:
        self._made.append((make, make(self.function)))
        try:
            yield
        finally:
            self._remove(make)

    def _remove(self, make: Make) -> None:
        """Removes a replacement, and makes later ones anew, without it."""
        makes = [each for each, _ in self._made]
        place = makes.index(make)
        del self._made[place:]
        for later in makes[place + 1 :]:
            self._made.append((later, later(self.function)))


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
def patched(owner: Any, name: str, make: Make, *, in_all_threads: bool = False) -> Iterator[None]:
    """A context in which this thread, or each one, has another function as `owner.name`.

    `make` takes the function that there is now, and returns its replacement.
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
        with chain.with_one_more(make):
            yield
    finally:
        with _lock:
            patch.users -= 1
            if not patch.users:
                setattr(owner, name, patch.original)
                del _patches[key]
