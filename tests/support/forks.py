"""Scripts in processes of their own, forked from one that has imported TensorFlow already.

To import TensorFlow takes seconds, a fork takes none. A script that is about the start of Python or
the import of TensorFlow must not be run this way: it finds TensorFlow imported.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence

from support import TESTS, python_path, script
from support.fork_server import Forked, Server

PLAIN_KERNELS = {"TF_ENABLE_ONEDNN_OPTS": "0"}
"""TensorFlow reads it when it is imported: kernels that two of its versions have in common."""


class Forks:
    def __init__(
        self,
        python: str = sys.executable,
        modules: tuple[str, ...] = ("tensorflow",),
        environment: Mapping[str, str] = types.MappingProxyType({}),
    ):
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
        """A process; `files` are paths of stdin, stdout and stderr."""
        texts = [list(map(str, each)) for each in (words, files)]
        environment = dict(os.environ if env is None else env)
        return Forked(self._server(), script.run, *texts, str(cwd or os.getcwd()), environment)

    def _server(self) -> Server:
        """The server of this process; the first who asks starts it."""
        key = json.dumps([self._python, self._modules, self._environment])
        with _LOCK:
            if key not in _SERVERS:
                environment = {**os.environ, **self._environment}
                environment["PYTHONPATH"] = python_path.joined(TESTS)
                _SERVERS[key] = Server(self._modules, environment, self._python)
            return _SERVERS[key]


_SERVERS: dict[str, Server] = {}
_LOCK = threading.Lock()
