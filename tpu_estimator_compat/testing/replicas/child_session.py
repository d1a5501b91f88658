"""Pytest in a process with replicas of its own: runs one test, and sends its reports."""

from __future__ import annotations

import itertools
import os
import pathlib
import pickle
import warnings
from typing import Any, BinaryIO

import _pytest.capture
import pytest

from tpu_estimator_compat.testing import devices
from tpu_estimator_compat.testing.replicas import marked_tests

# Plugins that print, or write files that belong to the parent process.
_LEFT_OUT = ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin", "pytest_cov")


def run(request: dict[str, Any], folder: pathlib.Path) -> None:
    captured = (folder / f"captured{i}" for i in itertools.count())
    # Files with names: the parent reads them if this process is killed.
    _pytest.capture.TemporaryFile = lambda **kw: next(captured).open("w+b", **kw)  # type: ignore
    args = [*request["args"], *itertools.chain(*(("-p", f"no:{name}") for name in _LEFT_OUT))]
    if request["has_xdist"]:
        args.append("-n0")
    with (folder / "answers").open("ab", buffering=0) as answers:
        child = ReplicaProcess(request, answers)
        status = pytest.main(args, plugins=[child])
        child.finish(status)


class ReplicaProcess:
    """The plugin that selects the test and sends its reports and warnings."""

    def __init__(self, request: dict[str, Any], answers: BinaryIO):
        self._request = request
        self._answers = answers
        self._config: pytest.Config
        self._faults: list[str] = []
        self._sent_reports = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        self._config = config
        config.stash[marked_tests.IS_CHILD] = True
        config.stash[marked_tests.NUMBER] = self._request["replicas"]
        config.args = [self._request["test"]]
        if self._request["workerinput"] is not None:
            config.workerinput = self._request["workerinput"]  # type: ignore[attr-defined]
        if self._request["seed"] is not None:  # of pytest-randomly
            config.option.randomly_seed = self._request["seed"]
        for name, value in _options(self._request["basetemp"]).items():
            setattr(config.option, name, value)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        test, nodeid = self._request["test"], self._request["nodeid"]
        items[:] = [item for item in items if marked_tests.named(item) == test]
        for item in items:
            # Outside of pytest's root, an id depends on pytest's arguments.
            item._nodeid = nodeid  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        if session.items:  # a conftest may have asked for other devices while it was imported
            devices.divide(self._request["replicas"])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._faults.append(str(report.longrepr))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._sent_reports = True
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._send("report", data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        if when == "runtest":  # else the parent has reported it
            said = {"when": when, "nodeid": nodeid, "location": location}
            self._send("warning", {"warning_message": _portable(warning_message), **said})

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, pytest.exit.Exception):
            self._send("exit", (excinfo.value.msg, excinfo.value.returncode))

    def finish(self, status: int) -> None:
        if not self._sent_reports:
            self._faults.append(
                f"{self._request['nodeid']} was not found in the process in which it was to run "
                f"(status {int(status)}). The names of a module's tests must be the same each time "
                "that it is imported."
            )
            self._send("failure", self._faults[0])
        elif status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._send("finished", None)

    def _send(self, kind: str, content: Any) -> None:
        self._answers.write(pickle.dumps((kind, content)))


def _options(basetemp: str) -> dict[str, Any]:
    """Values of options that would otherwise select other tests, or write the parent's files."""
    return {
        "basetemp": basetemp,
        "log_file": os.devnull,
        "xmlpath": None,
        "htmlpath": None,
        "report_log": None,
        "json_report": False,
        "pastebin": None,
        "setupshow": False,
        "setuponly": False,
        "cacheclear": False,
        "keyword": "",
        "markexpr": "",
        "deselect": None,
    }


def _portable(message: warnings.WarningMessage) -> warnings.WarningMessage:
    """The warning, to be pickled; a plain `Warning` that names its category if it cannot be."""
    text, category = message.message, message.category
    try:
        pickle.loads(pickle.dumps(text))
    except Exception:
        text, category = f"{category.__name__}: {text}", Warning
    return warnings.WarningMessage(text, category, message.filename, message.lineno)
