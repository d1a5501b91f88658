"""Tests with the mark `replicas`: each runs in a process of its own, and is reported here."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import pytest

from tpu_estimator_compat.testing.replicas import marks, processes

IS_CHILD = pytest.StashKey[bool]()
"""In a config: whether this process was started for one marked test."""

NUMBER = pytest.StashKey[int]()
"""In a config: the number of replicas of the test that runs in this process."""


class ReplicaTests:
    """The plugin that runs a session's marked tests."""

    def __init__(self) -> None:
        self._environment: dict[str, str] = {}
        self._directory = ""
        self._path: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Starts the server; notes variables and paths before tests and fixtures change them."""
        config = session.config
        marked = any(marks.number_of(item) for item in session.items)
        if config.option.collectonly or not marked or _debugs(config):
            return
        self._environment, self._directory = dict(os.environ), str(config.invocation_params.dir)
        self._path = processes.absolute_path()
        processes.kept_server()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        number = marks.number_of(item)
        if number is None:
            return None
        if item.config.option.setuponly:  # or setupplan: nothing is called
            item.config.stash[NUMBER] = number
            return None
        if _debugs(item.config):
            from tpu_estimator_compat.testing import devices  # it imports TensorFlow

            devices.divide(item.config.stash.setdefault(NUMBER, number))
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        run = pytest.CallInfo.from_call(
            lambda: self._run_in_process(item, number),
            when="call",
            reraise=(KeyboardInterrupt, pytest.exit.Exception),
        )
        if run.excinfo is not None:  # reports are missing, or a plugin's time limit is over
            _log(item, run)
        _end_previous(item, nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Fails a test that has no process with its number of replicas."""
        number = marks.number_of(item)
        if number is not None and item.config.stash.get(NUMBER, None) != number:
            pytest.fail(
                "a fixture added the mark `replicas`, which is too late: add it to the test, or in "
                "the hook pytest_collection_modifyitems. Or a debugger needs the test in this "
                "process, which had one of other replicas before: run this test alone",
                pytrace=False,
            )

    def _run_in_process(self, item: pytest.Item, number: int) -> None:
        config = item.config
        if wrong := marks.fault(item):  # of a mark that a hook added after collection
            pytest.fail(wrong, pytrace=False)
        request = {
            "replicas": number,
            "sys_path": self._path,
            "args": list(map(str, config.invocation_params.args)),
            "test": named(item),
            "nodeid": item.nodeid,
            "basetemp": _own_basetemp(config),
            "workerinput": getattr(config, "workerinput", None),
            "seed": getattr(config.option, "randomly_seed", None),
            "has_xdist": config.pluginmanager.hasplugin("xdist"),
        }
        live = config.option.capture == "no"
        directory, environment = self._directory, self._environment
        ended = processes.run_in_fork("run_test", request, live, directory, environment)
        _take(item, number, ended)


def named(item: pytest.Item) -> str:
    """The argument by which pytest selects the test, in any working directory."""
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


def _take(item: pytest.Item, number: int, ended: processes.Ended) -> None:
    """Logs a process's reports and warnings; fails if its message `finished` is missing."""
    hook = item.config.hook
    kinds = set()
    for kind, content in ended.answers:
        kinds.add(kind)
        if kind == "report":
            report = hook.pytest_report_from_serializable(config=item.config, data=content)
            item.ihook.pytest_runtest_logreport(report=report)
        elif kind == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=content)
        elif kind == "exit":
            pytest.exit(*content)
        elif kind == "failure":
            pytest.fail(content, pytrace=False)
    if "finished" not in kinds:
        message = f"The process of this test, with {number} replicas, ended {ended.how()}"
        pytest.fail(message, pytrace=False)


def _log(item: pytest.Item, run: pytest.CallInfo[Any]) -> None:
    report = item.ihook.pytest_runtest_makereport(item=item, call=run)
    item.ihook.pytest_runtest_logreport(report=report)


def _end_previous(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tears down this process's fixtures that the next test does not need."""
    state = item.session._setupstate
    run = pytest.CallInfo.from_call(
        lambda: state.teardown_exact(nextitem),
        when="teardown",
        reraise=(KeyboardInterrupt, pytest.exit.Exception),
    )
    if run.excinfo is not None:
        _log(item, run)


def _own_basetemp(config: pytest.Config) -> str:
    """A basetemp within this process's, for the child: pytest empties the one that it is given."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return tempfile.mkdtemp(prefix="replicas", dir=factory.getbasetemp())


def _debugs(config: pytest.Config) -> bool:
    """Whether a debugger, which needs the terminal, may stop in a test."""
    return bool(config.getoption("usepdb") or config.getoption("trace"))
