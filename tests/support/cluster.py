"""Starts the processes of a TF_CONFIG cluster on this machine, over loopback.

They are forked from one that has imported TensorFlow, which has not been used there.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import signal
from typing import Any

from support import processes
from support.fork_server import Forked
from support.forks import Forks
from support.ports import free_ports

TIMEOUT = 240  # seconds; one scenario takes some 20 on an idle machine

FORKS: list[Forks] = []
"""Where the processes come from: `tests/conftest.py` says it, for all tests."""


@dataclasses.dataclass
class Process:
    popen: Forked
    result_path: pathlib.Path
    log_path: pathlib.Path

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def wait(self, timeout: float = TIMEOUT) -> int:
        return self.popen.wait(timeout)

    def result(self) -> dict[str, Any]:
        """What it found, once it has ended well."""
        code = self.wait()
        assert code == 0, f"exit code {code}:\n{self.log[-4000:]}"
        return json.loads(self.result_path.read_text())


class Cluster:
    """Workers that run a scenario of a script together.

    Args:
      directory: for their results and logs.
      count: how many workers; the first is the chief. One for a process without TF_CONFIG.
      script: is called with the scenario, where to write what it found, and arguments as JSON.
    """

    def __init__(self, directory: pathlib.Path, count: int, script: pathlib.Path):
        self.directory = directory
        self.count = count
        self.script = script
        self.processes: list[Process] = []
        self.ports: list[int] = []

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *unused_error: object) -> None:
        for process in self.processes:
            with process.popen:
                process.popen.send_signal(signal.SIGKILL)
                process.popen.wait(TIMEOUT)

    def start(
        self,
        scenario: str,
        only: list[int] | None = None,
        ports: list[int] | None = None,
        **arguments: Any,
    ) -> None:
        self.ports = ports or free_ports(self.count)
        addresses = [f"localhost:{port}" for port in self.ports]
        jobs = {"chief": addresses[:1], "worker": addresses[1:]}
        run = len(self.processes)
        for index in range(self.count) if only is None else only:
            task = (
                {"type": "worker", "index": index - 1} if index else {"type": "chief", "index": 0}
            )
            environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
            environment.pop("TF_CONFIG", None)
            if self.count > 1:
                environment["TF_CONFIG"] = json.dumps({"cluster": jobs, "task": task})
            name = f"{scenario}-{run}-{index}-of-{self.count}"
            result, log = self.directory / f"{name}.json", self.directory / f"{name}.log"
            log.touch()
            popen = FORKS[0].start(
                *(self.script, scenario, result, json.dumps(arguments)),
                files=[os.devnull, log, log],
                env=environment,
            )
            self.processes.append(Process(popen, result, log))

    def results(self) -> list[dict[str, Any]]:
        return [process.result() for process in self.processes]


def run(
    script: pathlib.Path, directory: pathlib.Path, count: int, scenario: str, **arguments: Any
) -> list[dict]:
    """What `count` workers find in a scenario of `script`."""
    with Cluster(directory, count, script) as cluster:
        cluster.start(scenario, **arguments)
        return cluster.results()


wait_for = functools.partial(processes.wait_for, seconds=TIMEOUT)
