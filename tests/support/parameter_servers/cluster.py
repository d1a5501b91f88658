"""Starts, kills and waits for the tasks of a cluster with parameter servers."""

from __future__ import annotations

import json
import os
import pathlib
import signal
from typing import Any

from support import TESTS, python_path
from support.fork_server import Forked
from support.forks import Forks
from support.ports import free_ports
from support.processes import wait_for

TASK = pathlib.Path(__file__).with_name("task.py")
LIMIT = 120.0  # seconds; a cluster trains for some ten on two idle cores
KILL = signal.SIGKILL


class ServerCluster:
    """Two parameter servers, a chief and workers, each in a process forked by `forks`.

    Args:
      model: a function of `models`, or of `recommenders`.
      settings: arguments of `task.main`; `original` says whose estimator they use.
    """

    def __init__(
        self, folder: pathlib.Path, forks: Forks, model: str, workers: int = 0, **settings: Any
    ):
        self.folder, self._forks, self._model = folder, forks, model
        self._settings = settings
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"localhost:{port}" for port in free_ports(3 + workers)]
        chief = settings.pop("chief", "chief")
        self.jobs = {"ps": names[:2], chief: names[2:3]}
        if workers:
            self.jobs["worker"] = names[3:]
        self.tasks: dict[str, Forked] = {}

    def __enter__(self) -> ServerCluster:
        return self

    def __exit__(self, *unused_error: object) -> None:
        for task in self.tasks.values():
            with task:
                task.send_signal(KILL)

    def start(self, *names: str, **settings: Any) -> None:
        """Starts tasks such as "ps0", perhaps with other settings; a log begins anew."""
        for name in names:
            place = {"type": name[:-1], "index": int(name[-1])}
            tf_config = {"cluster": self.jobs, "task": place}
            self.log(name).unlink(missing_ok=True)
            self.log(name).touch()
            environment = {
                **os.environ,
                "TF_CONFIG": json.dumps(tf_config),
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "PYTHONPATH": python_path.joined(TESTS),
            }
            self.tasks[name] = self._forks.start(
                *(TASK, self._model, self.folder, name, json.dumps({**self._settings, **settings})),
                files=[os.devnull, self.log(name), self.log(name)],
                env=environment,
            )

    def log(self, name: str) -> pathlib.Path:
        return self.folder / f"{name}.log"

    def kill(self, name: str, number: int = KILL) -> None:
        with self.tasks.pop(name) as task:
            task.send_signal(number)
            assert task.wait(LIMIT) == -number

    def observed(self, name: str) -> dict[str, Any]:
        """What a task observed, once it has ended by itself."""
        code = self.tasks[name].wait(LIMIT)
        assert code == 0, f"{name}: exit code {code}:\n{self.log(name).read_text()[-4000:]}"
        found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text())
        assert found["error"] is None, found["error"]
        return found

    def says(self, name: str, words: str) -> None:
        """Waits until a task has logged some words."""
        wait_for(lambda: words in self.log(name).read_text(errors="replace"), LIMIT)

    def steps(self) -> list[int]:
        """The global steps of the checkpoints."""
        found = (self.folder / "model").glob("*.index")
        return sorted(int(path.stem.rpartition("-")[2]) for path in found)

    def saves(self, step: int) -> None:
        """Waits until there is a checkpoint of a step, or of a later one."""
        wait_for(lambda: max(self.steps(), default=-1) >= step, LIMIT)
