"""Child processes with a time limit and output in a file; none outlives this process.

Each child runs under a `keeper`, a process that reads a pipe from this one. When the pipe ends,
even if this process was killed, the keeper kills the child and all its descendants.
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

from tpu_estimator_compat.engine.files import removal

_PATIENCE = 10.0  # seconds to wait for the end of a killed process
_TOOLS = pathlib.Path(__file__).absolute().parent
# Runs a module of this package. The package's parent folder is appended to sys.path, where it
# hides no other module.
_RUN_MODULE = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)


@dataclasses.dataclass(frozen=True)
class Ending:
    """The end of a child process.

    Attributes:
      code: exit status, or minus the number of the signal that ended the process; None where it
        was killed at the time limit.
      is_stuck: whether it could not be killed: it waits in the kernel for a device.
    """

    code: int | None
    is_stuck: bool = False

    def __str__(self) -> str:
        if self.code is None:
            return "did not end in time"
        if self.code < 0:
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit status {self.code}"


def module_command(name: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package, never one of the working directory."""
    flag = "-I" if sys.flags.isolated else "-P"  # as this process: without PYTHONPATH
    return [sys.executable, flag, "-c", _RUN_MODULE, str(_TOOLS.parents[1]), name, *arguments]


def start(
    command: Sequence[str],
    log: str | os.PathLike[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Starts a command with empty input, and with its output and errors in the file `log`.

    The command inherits `descriptors`. The result is its keeper, for `wait` or `end`.
    """
    with open(log, "wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_TOOLS / "keeper.py"), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
            pass_fds=descriptors,
            start_new_session=True,
        )
    assert keeper.stdin is not None
    keeper.stdin.write(json.dumps([os.fspath(word) for word in command]).encode() + b"\n")
    keeper.stdin.flush()  # stays open: its end tells the keeper that this process is gone
    return keeper


def wait(
    process: subprocess.Popen[bytes],
    time_limit: float | None = None,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Ending:
    """Waits for a process of `start`, and leaves neither it nor its descendants running.

    Args:
      time_limit: seconds after which the process is killed; None for no limit.
      progress: called with the elapsed seconds, at once and then every second.
    """
    started = time.monotonic()
    code = None
    try:
        while code is None and _left(started, time_limit) > 0:
            progress(time.monotonic() - started)
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(max(0.0, min(1.0, _left(started, time_limit))))
    finally:
        end(process)
    return Ending(code, is_stuck=process.returncode is None)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills a process of `start` and its descendants."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # a fork may keep the pipe open: send a line, too
        os.write(process.stdin.fileno(), b"\n")
    process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[pathlib.Path]:
    """A new folder, removed at the context's end, which signals bring about in commands."""
    made, own = tempfile.mkdtemp(prefix=prefix), os.getpid()
    try:
        yield pathlib.Path(made)
    finally:
        if os.getpid() == own:  # a fork of this process must not remove the folder
            removal.remove(made, "temporary")


def _left(started: float, time_limit: float | None) -> float:
    return float("inf") if time_limit is None else started + time_limit - time.monotonic()
