"""Runs pytest on a copy of a tree, and says which test failed first."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence

PACKAGE = "tpu_estimator_compat"
OWN = "faults"  # these tests judge the list of faults, and so would fail for every one of them
_NOT_COPIED = (".git", ".venv", "__pycache__", ".pytest_cache", ".hypothesis", ".ruff_cache")
_OPTIONS = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:randomly")
_GREEN = (0, 5)  # 5: no test was left
_SECONDS_TO_END = 20.0  # after an interrupt

WHERE = f"import importlib.util, sys;print(importlib.util.find_spec({PACKAGE!r}).origin)"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run of pytest came to.

    Attributes:
      result: green, failed, limit (it took too long), or crashed (no test is to blame).
      test: the id of the first test that failed; empty where none did.
      message: the first line of its error.
      seconds: how long it took.
    """

    result: str
    test: str = ""
    message: str = ""
    seconds: float = 0.0


class Stopped(Exception):
    """The command is to end."""


class Processes:
    """Runs processes that all end when the command does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(
        self, words: Sequence[str], folder: pathlib.Path, env: dict[str, str], log: pathlib.Path
    ) -> subprocess.Popen[bytes]:
        """Starts a process in a group of its own.

        Raises:
          Stopped: `stop` was called.
        """
        with self._lock, log.open("wb") as output:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def wait(self, process: subprocess.Popen[bytes], limit: float | None) -> int | None:
        """The process's status; None where it took longer and was ended."""
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(process)
            with self._lock:
                self._running.discard(process)
                if self._stopped:
                    raise Stopped

    def stop(self) -> None:
        """Ends all that run, and lets nothing start any more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and its group: first as Ctrl-C does, so that pytest ends what it started."""
    if process.poll() is None:
        _signal(process, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
    _signal(process, signal.SIGKILL)  # what a test may have left behind, too
    process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class Copy:
    """A copy of a tree that tests may run in.

    Attributes:
      folder: the copy.
      package: the package in it.
    """

    def __init__(self, home: pathlib.Path, tree: pathlib.Path, processes: Processes):
        self.folder = home / "tree"
        self.package = self.folder / PACKAGE
        self._home = home
        self._processes = processes
        self._runs = 0
        shutil.copytree(
            tree, self.folder, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_COPIED)
        )
        # Of a folder of this name the package's users know that it is an installed one; else
        # `run` takes modules of PYTHONPATH for the script's own.
        self._path = home / "site-packages"
        self._path.mkdir()
        (self._path / PACKAGE).symlink_to(self.package, target_is_directory=True)
        (home / "tmp").mkdir()
        self._check_import()

    def change(self, file: str, old: str, new: str) -> None:
        """Puts a text in the place of another one in a file of the package.

        Raises:
          ValueError: the text is not there exactly once.
        """
        path = self.package / file
        text = path.read_text()
        if text.count(old) != 1:
            raise ValueError(f"{file} has it {text.count(old)} times: {old!r}")
        path.write_text(text.replace(old, new))

    def rooms(self) -> list[str]:
        """Folders and files directly below `tests` that have tests, sorted."""
        tests = self.folder / "tests"
        folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py")}
        return sorted(folders - {OWN})

    def test(
        self,
        paths: Sequence[str],
        limit: float | None,
        *,
        workers: int = 0,
        but: Sequence[str] = (),
    ) -> Outcome:
        """Runs tests until one fails.

        Args:
          paths: below `tests`, or ids of tests below it.
          limit: seconds.
          workers: how many processes; 0 for this one's child alone.
          but: ids of tests that are left out.
        """
        self._runs += 1
        report = self._home / f"report{self._runs}.xml"
        words = [sys.executable, "-m", "pytest", *_OPTIONS]
        words += ["-n", str(workers)] if workers else ["-p", "no:xdist"]
        words += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        words += [f"--basetemp={self._home / 'tmp' / f'pytest{self._runs}'}"]
        words += [f"--deselect={test}" for test in but]
        words += [f"tests/{path}" for path in paths]
        started = time.monotonic()
        process = self._processes.run(words, self.folder, self._environment(), self._log)
        status = self._processes.wait(process, limit)
        seconds = round(time.monotonic() - started, 1)
        return dataclasses.replace(self._outcome(status, report), seconds=seconds)

    @property
    def _log(self) -> pathlib.Path:
        return self._home / f"log{self._runs}"

    def _outcome(self, status: int | None, report: pathlib.Path) -> Outcome:
        if status is None:
            return Outcome("limit")
        if status in _GREEN:
            return Outcome("green")
        if report.exists() and (found := _first_failure(report)):
            return Outcome("failed", *found)
        return Outcome("crashed", message=self._log.read_text(errors="replace")[-2000:])

    def _environment(self) -> dict[str, str]:
        """This process's, but what is imported, also by children of tests, is the copy."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        own["PYTHONPATH"] = str(self._path)
        own["TMPDIR"] = str(self._home / "tmp")
        own.pop("PYTHONPYCACHEPREFIX", None)
        return own

    def _check_import(self) -> None:
        """Raises RuntimeError where another package than the copy's would be imported."""
        words = [sys.executable, "-c", WHERE]
        process = self._processes.run(words, self._home / "tmp", self._environment(), self._log)
        self._processes.wait(process, None)
        origin = pathlib.Path(self._log.read_text().strip())
        if origin.resolve() != (self.package / "__init__.py").resolve():
            raise RuntimeError(f"{origin} would be tested, not {self.package}")


@contextlib.contextmanager
def copy_of(tree: pathlib.Path, processes: Processes) -> Iterator[Copy]:
    """A copy in a temporary folder, which is removed."""
    # A short name: there are sockets in it, whose paths may have a hundred characters.
    with tempfile.TemporaryDirectory(prefix="fault_", ignore_cleanup_errors=True) as home:
        yield Copy(pathlib.Path(home).resolve(), tree, processes)


def _first_failure(report: pathlib.Path) -> tuple[str, str] | None:
    """The id, and the error's first line, of the first test of a report that failed."""
    for case in ElementTree.parse(report).iter("testcase"):
        for kind in ("failure", "error"):
            found = case.find(kind)
            if found is not None:
                lines = (found.get("message") or "").splitlines()
                return _id(case), lines[0] if lines else ""
    return None


def _id(case: ElementTree.Element) -> str:
    """A test's id as pytest takes it."""
    file, name = case.get("file", ""), case.get("name", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = case.get("classname", "").removeprefix(module).strip(".")
    return "::".join(part for part in (file, *classes.split("."), name) if part)
