"""Reads untrusted files: only regular ones are opened, and read up to a limit."""

from __future__ import annotations

import os
import stat

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NotRegular(OSError):
    """The path leads to a pipe, a device or another file that is not regular."""


class TooLarge(OSError):
    """The file is larger than the limit."""


def check(path: str | os.PathLike[str]) -> None:
    """Raises OSError unless the path leads to a regular file: opening a pipe may hang."""
    _check(os.stat(path).st_mode)


def read(path: str | os.PathLike[str], most: int) -> bytes:
    """The bytes of a regular file; OSError for another, or for more than `most` bytes."""
    check(path)
    # O_NONBLOCK: a pipe may have replaced the file in the meantime.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        _check(os.fstat(handle).st_mode)
        data = file.read(most + 1)
    if len(data) > most:
        raise TooLarge(f"it has more than {most >> 20} MiB")
    return data


def _check(mode: int) -> None:
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError("it is a folder")
    if kind != stat.S_IFREG:
        raise NotRegular(f"it is {_KINDS.get(kind, 'no regular file')}")
