"""Scripts in processes of their own, forked from one that has imported TensorFlow already.

To import TensorFlow takes seconds, a fork takes none. One server for each interpreter serves all
workers of a session. A script that is about the start of Python or the import of TensorFlow must
not be run this way: it finds TensorFlow imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence

import pytest

from support.sharing import shared
from tpu_estimator_compat.testing.replicas.forks import Forked, Server, job

PLAIN_KERNELS = {"TF_ENABLE_ONEDNN_OPTS": "0"}
"""TensorFlow reads it when it is imported: kernels that two of its versions have in common."""


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
        return Forked(self._address(), job(*words, files=files, cwd=cwd, env=env))

    def _address(self) -> str:
        """The server's socket; the first who asks starts it."""
        started = json.dumps([self._python, self._modules, self._environment])
        key = hashlib.sha256(started.encode()).hexdigest()[:12]
        folder = shared(self._factory, f"forks-{key}", self._start)
        return (folder / "address").read_text()

    def _start(self, folder: pathlib.Path) -> None:
        of_session = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
        environment = {**os.environ, **self._environment}
        server = Server(self._modules, environment, of_session, self._python)
        (folder / "address").write_text(server.address())
