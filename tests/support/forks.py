"""Scripts in processes of their own, forked from one that has imported TensorFlow already.

To import TensorFlow takes seconds, a fork takes none. One server for each interpreter serves all
workers of a session. A script that is about the start of Python or the import of TensorFlow must
not be run this way: it finds TensorFlow imported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from support.sharing import shared

SERVER = pathlib.Path(__file__).with_name("fork_server.py")
PLAIN_KERNELS = {"TF_ENABLE_ONEDNN_OPTS": "0"}
"""TensorFlow reads it when it is imported: kernels that two of its versions have in common."""

START_LIMIT = 300.0  # seconds; it takes 3 on a quiet machine


class Forks:
    def __init__(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        python: str = sys.executable,
        modules: tuple[str, ...] = ("tensorflow",),
        environment: Mapping[str, str] = types.MappingProxyType({}),
    ):
        self._factory = tmp_path_factory
        self._python = python
        self._modules = modules
        self._environment = dict(environment)

    def run(
        self,
        *words: str | pathlib.Path,
        cwd: str | pathlib.Path | None = None,
        env: dict[str, str] | None = None,
        given: str = "",
        timeout: float = 600.0,
    ) -> subprocess.CompletedProcess[str]:
        """What `subprocess.run([python, *words])` gives, with the output as text."""
        with tempfile.TemporaryDirectory(prefix="fork_") as folder:
            files = [pathlib.Path(folder, name) for name in ("stdin", "stdout", "stderr")]
            files[0].write_text(given)
            with self.start(*words, files=files, cwd=cwd, env=env) as forked:
                status = forked.wait(timeout)
            out, err = (path.read_text(errors="replace") for path in files[1:])
            return subprocess.CompletedProcess([str(word) for word in words], status, out, err)

    def start(
        self,
        *words: str | pathlib.Path,
        files: Sequence[str | pathlib.Path],
        cwd: str | pathlib.Path | None = None,
        env: dict[str, str] | None = None,
    ) -> Forked:
        job: dict[str, Any] = {
            "words": list(map(str, words)),
            "cwd": str(cwd or pathlib.Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "files": list(map(str, files)),
        }
        return Forked(self._address(), job)

    def _address(self) -> str:
        """The server's socket; the first who asks starts it."""
        started = json.dumps([self._python, self._modules, self._environment])
        key = hashlib.sha256(started.encode()).hexdigest()[:12]
        folder = shared(self._factory, f"forks-{key}", self._start)
        return (folder / "address").read_text()

    def _start(self, folder: pathlib.Path) -> None:
        # A socket's path may have a hundred characters at most.
        address = os.path.join(tempfile.mkdtemp(prefix="forks_"), "socket")
        of_session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [self._python, str(SERVER), address, str(of_session), *self._modules],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self._environment},
            )
        end = time.monotonic() + START_LIMIT
        while not os.path.exists(address):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise RuntimeError((folder / "log").read_text(errors="replace")[-3000:])
            time.sleep(0.02)
        (folder / "address").write_text(address)


class Forked:
    """A script's process. Used as a context, it is killed in the end, unless it has ended.

    Args:
      address: the server's socket.
      job: what the server is told.

    Attributes:
      pid: the process.
      returncode: the status with which it ended, negative for a signal; None before that.
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
        """Its status, once it has ended; raises TimeoutError where that takes longer."""
        if self.returncode is None:
            self.returncode = self._next_number(timeout)
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError):
            return self.wait(0.001)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
