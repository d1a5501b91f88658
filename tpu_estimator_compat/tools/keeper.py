"""Runs a command for a tool and kills it when the tool ends: `python -I -S keeper.py PARENT`.

Standard input has one line, the command's words in JSON, and stays open. The command runs until it
ends, standard input is closed or has a second line, or the process PARENT is gone. The keeper then
kills all descendants of the command, in whatever session.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

_EVERY = 1.0  # seconds between checks of the parent, whose own children may keep the pipe open
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl(2)


def run(parent: int, command: Sequence[str]) -> int:
    """Runs a command, at most until the parent goes; returns its status, or minus its signal."""
    ended, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *unused: None)  # on Linux only
    prctl(_SUBREAPER, 1)  # orphaned descendants become children of this process
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        close_fds=False,  # the parent has chosen what is inherited
        start_new_session=True,
        preexec_fn=lambda: prctl(_DEATH_SIGNAL, signal.SIGKILL),
    )
    code = process.poll()
    while code is None and _wait_while_there(parent, ended):
        code = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _kill_children()
    return process.returncode if code is None else code


def _wait_while_there(parent: int, ended: int) -> bool:
    """Waits for the parent or for `ended`, at most `_EVERY` seconds.

    Returns whether the parent runs and has sent nothing.
    """
    ready, _, _ = select.select([0, ended], [], [], _EVERY)
    if ended in ready:
        os.read(ended, 64)
    return 0 not in ready and os.getppid() == parent


def _kill_children() -> None:
    """Kills all descendants: orphans become children of this process."""
    while children := list(_children()):
        for child in children:
            with contextlib.suppress(PermissionError):  # it runs as another user
                os.kill(child, signal.SIGKILL)
        os.waitpid(-1, 0)


def _children() -> Iterator[int]:
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                yield int(stat.parent.name)


def _end_as(code: int) -> None:
    """Ends this process with an exit status, or by the signal that ended its child."""
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has written its own core file
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    with open(0, "rb", buffering=0, closefd=False) as lines:  # a second line stays in the pipe
        words = json.loads(lines.readline())
    _end_as(run(int(sys.argv[1]), words))
