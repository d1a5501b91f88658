"""The client of `fork_server.py`: starts a server, and processes that it forks.

Importing TensorFlow takes seconds, a fork does not. A forked process has imported the server's
modules, and has run nothing of TensorFlow.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

SERVER = pathlib.Path(__file__).with_name("fork_server.py")

START_LIMIT = 300.0  # seconds; it takes 3 on a quiet machine


class Server:
    """A server that is started on construction, and ends with the process `owner`.

    Args:
      modules: names of modules that it imports before it forks.
      environment: all variables of its environment.

    Attributes:
      folder: the folder of its socket and its log. The server removes it at its end.
    """

    def __init__(
        self,
        modules: Sequence[str],
        environment: Mapping[str, str],
        owner: int,
        python: str = sys.executable,
    ):
        # A socket's path may have a hundred characters at most.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="forks_"))
        self._address = str(self.folder / "socket")
        self._log = self.folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, str(SERVER), self._address, str(owner), *modules],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=dict(environment),
            )

    def address(self) -> str:
        """Waits for the imports; returns the socket's path, or raises RuntimeError with the log."""
        end = time.monotonic() + START_LIMIT
        while not os.path.exists(self._address):
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise RuntimeError(self._log.read_text(errors="replace")[-3000:])
            time.sleep(0.02)
        return self._address

    def close(self) -> None:
        """Ends it, with the processes that it forked."""
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)  # left if it had not begun to serve


def job(
    *words: str | pathlib.Path,
    files: Sequence[str | pathlib.Path],
    cwd: str | pathlib.Path | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The message to a server that asks for a process `python WORDS...`.

    `files` are paths of stdin, stdout and stderr; `cwd` and `env` default to this process's.
    """
    return {
        "words": list(map(str, words)),
        "cwd": str(cwd or pathlib.Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "files": list(map(str, files)),
    }


class Forked:
    """A script's process. At the end of a `with`, it is killed unless it has ended.

    `returncode` is its exit status, negative for a signal; None before it has ended.
    """

    def __init__(self, address: str, job: dict[str, Any]):
        self.returncode: int | None = None
        self._client = socket.socket(socket.AF_UNIX)
        self._client.connect(address)
        self._client.sendall(json.dumps(job).encode() + b"\n")
        self._told = b""
        self.pid = self._next_number(START_LIMIT)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *unused_error: object) -> None:
        self._client.close()

    def _next_number(self, timeout: float) -> int:
        self._client.settimeout(timeout)
        while b"\n" not in self._told:
            received = self._client.recv(64)
            if not received:
                raise RuntimeError("the server of forks ended; see its log")
            self._told += received
        line, _, self._told = self._told.partition(b"\n")
        return int(line)

    def wait(self, timeout: float) -> int:
        """Waits for its exit status; raises TimeoutError after `timeout` seconds."""
        if self.returncode is None:
            self.returncode = self._next_number(timeout)
        return self.returncode

    def poll(self, timeout: float = 0.001) -> int | None:
        with contextlib.suppress(TimeoutError):
            return self.wait(timeout)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
