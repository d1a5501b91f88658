"""Child processes: a time limit, output in a file, and an end with the parent, however it ends.

What a tool runs has a `keeper` between itself and this process, which is told by the end of a pipe
that this process is gone, and which ends the child with all that it started. A folder for children
has one, too, which removes it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_PATIENCE = 10.0  # seconds until a process that was killed has ended
_TOOLS = pathlib.Path(__file__).absolute().parent
# A module of this package, whatever is in the working directory, and last on the path.
_RUN_MODULE = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


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


def module(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package: nothing in the working directory hides it."""
    return [sys.executable, "-P", "-c", _RUN_MODULE, str(_TOOLS.parents[1]), name, *arguments]


def start(
    command: Sequence[str],
    log: str | os.PathLike[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts a command, its input empty, its output in the file `log`, to `wait` for.

    `descriptors` are open files that it inherits.
    """
    with open(log, "wb") as output:
        return _keeper(
            {"run": [os.fspath(word) for word in command]},
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
            pass_fds=descriptors,
        )


def wait(
    process: subprocess.Popen[bytes],
    time_limit: float | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
    every: float = 1.0,
) -> Ending:
    """Waits for the end of a process of `start`; however this call ends, nothing of it is left.

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
        end(process)
    return Ending(code, is_stuck=process.returncode is None)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of `start`, and all that it started."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # for where a fork of this process holds the pipe
        os.write(process.stdin.fileno(), b"\n")
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[pathlib.Path]:
    """A new folder, which goes at the end, or with this process, however that ends."""
    made = tempfile.mkdtemp(prefix=prefix)
    keeper = _keeper({"remove": made}, cwd="/")
    try:
        yield pathlib.Path(made)
    finally:
        end(keeper)


def _keeper(asked: Mapping[str, Any], **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-S", str(_TOOLS / "keeper.py"), str(os.getpid())]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **options)
    assert keeper.stdin is not None
    keeper.stdin.write(json.dumps(asked).encode() + b"\n")
    keeper.stdin.flush()  # it stays open: its end tells the keeper that this process is gone
    return keeper


def _left(started: float, time_limit: float | None) -> float:
    return float("inf") if time_limit is None else started + time_limit - time.monotonic()
