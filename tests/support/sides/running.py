"""Sides: who runs the scenarios of a suite, under which settings; and their answers."""

import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import sys
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from support import TESTS, python_path
from support.forks import PLAIN_KERNELS, Forks
from support.original import Original, find_or_make
from tpu_estimator_compat.environment import RUNTIME_VARIABLE, SESSION
from tpu_estimator_compat.tools.compare.environment import Unavailable

MODULES = ("tensorflow", "tensorflow.compat.v1", "tpu_estimator_compat.tpu")
"""What this package's process has imported before it forks."""

ENVIRONMENT = {**PLAIN_KERNELS, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
"""Of all sides."""

IN_SESSIONS = {RUNTIME_VARIABLE: SESSION}

HANG = 1500.0  # seconds, of a process; a scenario has a limit of its own

OPTIONS = {"limit": 120.0, "largest": 20, "keeps_homes": False}
"""Of requests, where a side has no others: see `driver`."""


@dataclasses.dataclass(frozen=True)
class Side:
    """One that runs scenarios.

    Attributes:
      name: "original" or "ours".
      forks: of a process that has imported TensorFlow.
      suite: a folder of the tests.
      settings: what the suite's `setting` goes by, as JSON has it.
      environment: variables, besides those of all sides.
      processes: how many at once; they wait more than they compute.
      options: in place of `OPTIONS`.
    """

    name: str
    forks: Forks
    suite: str
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    processes: int = 2
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def run(self, names: Iterable[str], out: pathlib.Path) -> None:
        """Runs scenarios; `answer` gives what was observed."""
        out.mkdir(parents=True, exist_ok=True)
        fields = {"suite": self.suite, "side": self.name, "settings": self.settings}
        request = {**OPTIONS, **self.options, **fields, "names": list(names), "out": str(out)}
        count = min(self.processes, len(request["names"]))
        with concurrent.futures.ThreadPoolExecutor(max(1, count)) as pool:
            for done in [pool.submit(self._process, request, out) for _ in range(count)]:
                done.result()

    def _process(self, request: dict[str, Any], out: pathlib.Path) -> None:
        """A process at a time, until all names are taken; one that ended its process is noted."""
        while not all((out / f"{name}.taken").exists() for name in request["names"]):
            process = uuid.uuid4().hex
            done = self.forks.run(
                *("-m", "support.sides.driver"),
                given=json.dumps({**request, "process": process}),
                cwd=out,  # modules in the working directory are legacy, which ours are not
                env={
                    **os.environ,
                    "PYTHONPATH": python_path.joined(TESTS.parent, TESTS),
                    "XDG_CACHE_HOME": str(out / "cache"),
                    **ENVIRONMENT,
                    **self.environment,
                },
                timeout=HANG,
            )
            with (out / "log").open("a") as log:
                log.write(done.stdout + done.stderr)
            if done.returncode:
                self._note_the_end(out, process, done)

    def _note_the_end(self, out: pathlib.Path, process: str, done: Any) -> None:
        for taken in out.glob("*.taken"):
            answered, stacks = (taken.with_suffix(suffix) for suffix in (".json", ".stacks"))
            if taken.read_text() == process and not answered.exists():
                slow = stacks.exists() and stacks.read_text()
                how = "it took too long" if slow else f"exit {done.returncode}"
                answered.write_text(json.dumps({"ended": how, "log": done.stderr[-4000:]}))
                return
        raise RuntimeError(f"{self.name}: exit {done.returncode}\n{done.stderr[-4000:]}")


def of_original(original: Original, suite: str, **fields: Any) -> Side:
    return Side("original", original.forks, suite, **fields)


def of_ours(suite: str, **fields: Any) -> Side:
    """A side of this package, of a suite; all have the same process to fork from."""
    forks = Forks(sys.executable, MODULES, PLAIN_KERNELS)
    return Side("ours", forks, suite, **fields)


def of_sessions(suite: str, **fields: Any) -> Side:
    """The original's loops in sessions of this TensorFlow, of which a suite's `judges` tells."""
    given = {"settings": {"judges": True}, "environment": IN_SESSIONS, **fields}
    return of_ours(suite, **given)


def judge(
    request: pytest.FixtureRequest,
    suite: str,
    **fields: Any,
) -> Side:
    """The original; sessions where it cannot be had, but under CI, where the fixture fails."""
    try:
        find_or_make()
    except Unavailable:
        if not os.environ.get("CI"):
            return of_sessions(suite, **fields)
    return of_original(request.getfixturevalue("original"), suite, **fields)


def run_together(*runs: tuple[Side, Iterable[str], pathlib.Path]) -> None:
    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        for done in [pool.submit(side.run, names, out) for side, names, out in runs]:
            done.result()


@functools.cache
def answer(out: pathlib.Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    return found


def completed(out: pathlib.Path, name: str) -> dict[str, Any]:
    """The same of a scenario that is to end well; fails with how it ended if not."""
    found = answer(out, name)
    if "ended" in found or found["error"]:
        told = found.get("ended") or found["error"]
        pytest.fail(f"{name!r}, whose log is in {out}: {told}", pytrace=False)
    return found


def asked_for(session: pytest.Session, suite: str, parameter: str) -> list[Any]:
    """The values of a parameter that the selected tests of a suite have."""
    given = {
        item: item.callspec.params
        for item in session.items
        if TESTS / suite in item.path.parents and hasattr(item, "callspec")
    }
    found = [params[parameter] for params in given.values() if parameter in params]
    return list(dict.fromkeys(found))
