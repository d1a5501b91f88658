"""Memory that this process can still allocate, such as for the snapshot of a checkpoint."""

from __future__ import annotations

import pathlib
import sys

_MEMINFO = pathlib.Path("/proc/meminfo")
_CGROUP = pathlib.Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Free and freeable bytes, within the container's limit; `sys.maxsize` except on Linux."""
    return min(_of_machine(), _of_container())


def _of_machine() -> int:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return sys.maxsize
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else sys.maxsize


def _of_container() -> int:
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = (_CGROUP / "memory.current").read_text().strip()
    except OSError:
        return sys.maxsize
    return sys.maxsize if limit == "max" else int(limit) - int(used)
