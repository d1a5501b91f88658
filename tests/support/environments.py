"""Environments that tests make once and keep in the user's cache directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator


class Unavailable(Exception):
    """An environment cannot be had on this machine; the message says why."""


def cache_directory() -> pathlib.Path:
    """This package's place in the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(root) / "tpu_estimator_compat"


@contextlib.contextmanager
def lock(path: pathlib.Path) -> Iterator[None]:
    """Holds an exclusive lock on a file; other processes wait. It goes when its holder dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise Unavailable(f"the cache directory cannot be written ({error}).") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
