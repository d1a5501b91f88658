"""Child processes: a time limit, output in a file, an end with the parent and with an interruption.

The child calls `end_with_parent`. It may be a Python without this package, as old as 3.7.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_PATIENCE = 10.0  # seconds until a process that was killed has ended


@dataclasses.dataclass(frozen=True)
class Ending:
    """The end of a child process.

    Attributes:
      code: its exit status, or minus the number of the signal that ended it; None where it took
        too long and was killed.
      is_stuck: whether it runs nevertheless: it waits in the kernel, for a device.
    """

    code: int | None
    is_stuck: bool = False

    def __str__(self) -> str:
        if self.code is None:
            return "did not end in time"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit status {self.code}"


def start(
    command: Sequence[str],
    log: str | os.PathLike[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a command in a session of its own, its output in the file `log`, to `wait` for."""
    with open(log, "wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # its end tells the child that this process is gone
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )


def wait(
    process: subprocess.Popen[bytes],
    time_limit: float | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
    every: float = 1.0,
) -> Ending:
    """Waits for the end of a process of `start`; however this call ends, none of its group is left.

    Args:
      time_limit: seconds after which it is killed, with its children; None for none.
      progress: called at the beginning and at intervals with the seconds since the beginning.
      every: seconds between two calls of `progress`.
    """
    started = time.monotonic()
    code = None
    try:
        while code is None and _left(started, time_limit) > 0:
            progress(time.monotonic() - started)
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(max(0.0, min(every, _left(started, time_limit))))
    finally:
        _end(process)
    return Ending(code, is_stuck=process.returncode is None)


def _left(started: float, time_limit: float | None) -> float:
    return float("inf") if time_limit is None else started + time_limit - time.monotonic()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    if process.stdin is not None:
        process.stdin.close()


def end_with_parent(folder: str | None = None) -> None:
    """Has this child of `start` end when its parent is gone, and gives it an empty standard input.

    `folder` is removed then; otherwise the parent removes it.
    """
    lifeline = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    threading.Thread(target=_watch, args=(lifeline, folder), daemon=True).start()


def _watch(lifeline: int, folder: Any) -> None:
    os.read(lifeline, 1)  # the parent holds the other end, and never writes
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
