"""The process between a tool and its child: `python -I -S keeper.py PARENT`.

Standard input has a line of JSON, `{"run": COMMAND}`, and stays open. This process lives until that
is closed or has a second line, or until its parent, the process PARENT, is gone, however that came.
Then nothing of the command is left: not what it started, either, in whatever session. With the line
`{"remove": FOLDER}` a folder is removed then.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

_EVERY = 1.0  # seconds between two looks at the parent, whose own children may hold the pipe
_QUIET = 2.0  # seconds in which nobody has made a removed folder anew
_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl(2)


def run(parent: int, command: Sequence[str]) -> int:
    """Runs a command while the parent is there; its exit status, or minus its signal's number."""
    ended, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    prctl = getattr(ctypes.CDLL(None), "prctl", lambda *unused: None)  # Linux has it
    prctl(_SUBREAPER, 1)  # orphans come to this process
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        close_fds=False,  # the parent has chosen what is inherited
        start_new_session=True,
        preexec_fn=lambda: prctl(_DEATH_SIGNAL, signal.SIGKILL),
    )
    code = process.poll()
    while code is None and _is_there(parent, ended):
        code = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _kill_children()
    return process.returncode if code is None else code


def remove(parent: int, folder: str) -> None:
    """Removes a folder when the parent is gone, or asks for it, once its children have ended."""
    while _is_there(parent):
        pass
    is_asked = select.select([0], [], [], 0)[0] and os.read(0, 1)
    shutil.rmtree(folder, ignore_errors=True)
    quiet = time.monotonic()
    while not is_asked and time.monotonic() < quiet + _QUIET:
        if os.path.isdir(folder):  # by a process that is being killed
            shutil.rmtree(folder, ignore_errors=True)
            quiet = time.monotonic()
        time.sleep(0.05)


def _is_there(parent: int, *others: int) -> bool:
    """Whether the parent is there and the input open, when one of the others or time speaks."""
    ready, _, _ = select.select([0, *others], [], [], _EVERY)
    for other in others:
        if other in ready:
            os.read(other, 64)
    return 0 not in ready and os.getppid() == parent


def _kill_children() -> None:
    """Kills all children, and theirs, which come here when they are orphans."""
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
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child has written its own
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


if __name__ == "__main__":
    with open(0, "rb", buffering=0, closefd=False) as lines:  # one, and no more
        asked = json.loads(lines.readline())
    if "remove" in asked:
        remove(int(sys.argv[1]), asked["remove"])
    else:
        _end_as(run(int(sys.argv[1]), asked["run"]))
