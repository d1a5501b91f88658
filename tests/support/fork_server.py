"""Processes forked by Python's forkserver, from one that has imported modules.

Importing TensorFlow takes seconds, a fork does not. A forked process has imported the server's
modules, and has run nothing of TensorFlow. The servers here are not the one of `multiprocessing`,
which belongs to the program.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import pickle
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection, forkserver, util
from typing import Any, NoReturn

_CODE = """\
import gc, importlib, shutil, sys
from multiprocessing import forkserver
sys.path[:] = filter(None, sys.path)  # not the working directory
for module in {modules!r}:
    importlib.import_module(module)
gc.collect()
gc.freeze()
try:
    forkserver.main({listener}, {alive}, None)
finally:
    shutil.rmtree({folder!r}, ignore_errors=True)  # its Python may lack this package
"""


class Server(forkserver.ForkServer):
    """A server that is started on construction, and ends with this process.

    Args:
      modules: names of modules that it imports before it forks.
      environment: all variables of its environment.

    Attributes:
      folder: the folder of its socket and its log. The server removes it at its end.
      close: ends it.
    """

    def __init__(
        self, modules: Sequence[str], environment: Mapping[str, str], python: str = sys.executable
    ):
        super().__init__()
        # A socket's path may have a hundred characters at most.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forks_"))
        self.log = self.folder / "log"
        self._forkserver_address = str(self.folder / "socket")
        alive, self._forkserver_alive_fd = os.pipe()
        with socket.socket(socket.AF_UNIX) as listener, self.log.open("wb") as log:
            listener.bind(self._forkserver_address)
            listener.listen()
            given = {"listener": listener.fileno(), "alive": alive, "folder": str(self.folder)}
            process = subprocess.Popen(
                [python, "-c", _CODE.format(modules=list(modules), **given)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=dict(environment),
                pass_fds=[listener.fileno(), alive],
            )
        os.close(alive)
        given_up = self._forkserver_alive_fd, process, self.folder
        # Of a process that forks, its child does not end the server.
        self.close = util.Finalize(self, _end, given_up, exitpriority=0)

    def ensure_running(self) -> None:
        """Unlike the base class's, starts none: what ended once would end again."""


def _end(alive: int, process: subprocess.Popen[bytes], folder: pathlib.Path) -> None:
    os.close(alive)
    process.terminate()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)  # the server is removing it, too


class Forked:
    """A process that calls a function. At the end of a `with`, it is killed unless it has ended.

    The function, which the server can import, gets one more argument: a file that is at its end
    when this process has ended. It does not return, since Python would not end as usual.

    Attributes:
      returncode: its exit status, negative for a signal; None before it has ended.
    """

    def __init__(self, server: Server, function: Callable[..., NoReturn], *args: Any):
        self.returncode: int | None = None
        self._server = server
        child = types.SimpleNamespace(_bootstrap=functools.partial(function, *args))
        try:
            self._status, told = server.connect_to_new_process([])
            self._files = [self._status, os.dup(told)]
            with open(told, "wb") as pipe:
                pipe.write(pickle.dumps({}) + pickle.dumps(child))
            self.pid = forkserver.read_signed(self._status)
        except (OSError, EOFError):
            raise RuntimeError(f"the server of forks ended. {self._log()}") from None

    def _log(self) -> str:
        log = self._server.log
        return log.read_text(errors="replace")[-3000:] if log.exists() else "It was closed."

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *unused_error: object) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # it may have no group of its own yet
                os.killpg(self.pid, signal.SIGKILL)
        for file in self._files:
            os.close(file)

    def wait(self, timeout: float) -> int:
        """Waits for its exit status; raises TimeoutError after `timeout` seconds."""
        if self.returncode is None:
            if not connection.wait([self._status], timeout):
                raise TimeoutError
            self.returncode = forkserver.read_signed(self._status)
        return self.returncode

    def poll(self, timeout: float = 0.001) -> int | None:
        with contextlib.suppress(TimeoutError):
            return self.wait(timeout)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
