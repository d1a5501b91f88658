"""Golden values in a session of pytest: the fixture, and the list of files at its end.

Pytest loads this module for every session, so NumPy is imported when a value is compared.
"""

from __future__ import annotations

import os
import pathlib
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tpu_estimator_compat.testing.golden import files

_ATTRIBUTE = "tpu_estimator_compat_golden"
"""The attribute of a report that lists written values: pytest-xdist sends attributes, too."""


class Golden:
    """Compares values with those in a test's golden file, or writes them there.

    Attributes:
      changes: for each name that was written, a table of differences from the file before.
      passed: whether the test has come to its end without a failure.

    Example:

        def test_losses_of_three_steps(golden):
            estimator.train(input_fn, steps=3)
            golden(estimator.evaluate(input_fn, steps=1))
            golden(estimator.get_variable_value("dense/kernel"), name="kernel", rtol=1e-4)
    """

    def __init__(self, path: pathlib.Path, nodeid: str, updates: bool):
        self.path = path
        self.changes: dict[str, str] = {}
        self.passed = False
        self._nodeid = nodeid
        self._updates = updates
        self._used: set[str] = set()

    def __call__(
        self, value: Any, name: str | None = None, rtol: float = 1e-5, atol: float = 1e-8
    ) -> None:
        """Fails if a value is not the one in the file, within tolerances.

        Args:
          value: numbers, strings, bytes, bools, None and arrays, in dicts, lists and tuples; or an
            object that has `as_dict()`. Of an array with more than 200 elements, a summary is
            compared.
          name: a name of the value, for a test that has several.
          rtol: the largest relative difference of floats. NaN equals NaN. Anything else, dtypes
            and shapes among it, must be equal.
          atol: a difference of floats below it is none.

        Raises:
          AssertionError: it differs, or the file does not have it.
          TypeError: a part of the value is of another type.
          ValueError: the test has used the name already, or the file is no JSON.
        """
        __tracebackhide__ = True
        from tpu_estimator_compat.testing.golden import values

        self._take_name(name)
        now = values.leaves(value)
        sections = files.read(self.path)
        stored = sections.get(name or "")
        found = values.differences(stored or {}, now, rtol, atol)
        if not found and stored:
            return
        table = values.table(found) if stored else ""
        if self._updates:
            sections[name or ""] = now
            files.write(self.path, sections)
            self.changes[name or ""] = table
        else:
            raise AssertionError(self._failure(name, len(found), table))

    def check_names(self) -> None:
        """Fails if the file has values that the test did not give, so that none was compared."""
        __tracebackhide__ = True
        if unused := sorted(set(files.read(self.path)) - self._used):
            raise AssertionError(
                f"{os.path.relpath(self.path)} has values that the test did not give: "
                f"{', '.join(name or 'the one without a name' for name in unused)}. If they are no "
                "longer wanted, remove their lines."
            )

    def _take_name(self, name: str | None) -> None:
        if (name or "") in self._used:
            raise ValueError(
                f"the test gives {name!r} twice: give `golden` another name for each value"
                if name
                else "the test gives two values without a name: call golden(value, name=...)"
            )
        self._used.add(name or "")

    def _failure(self, name: str | None, count: int, table: str) -> str:
        file = os.path.relpath(self.path)
        what = f"{file} [{name}]" if name else file
        command = f"pytest {shlex.quote(self._nodeid)} --update-golden"
        if not table:
            return f"{what} is not there. To write it from the current values:\n  {command}"
        head = f"{count} values are not those of {what}"
        if count == 1:
            head = f"a value is not that of {what}"
        return f"{head}:\n{table}\nIf the new values are right, write them:\n  {command}"


_GOLDEN = pytest.StashKey[Golden]()


def fixture(request: pytest.FixtureRequest) -> Iterator[Golden]:
    item: pytest.Item = request.node
    path = files.file_of(item.path, item.nodeid)
    compares = Golden(path, item.nodeid, item.config.option.update_golden)
    item.stash[_GOLDEN] = compares
    yield compares
    if compares.passed and not item.config.option.update_golden:
        compares.check_names()


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Notes in the last report of a test what it wrote, for the end of the session."""
    compares = item.stash.get(_GOLDEN, None)
    if compares is not None and report.when == "call":
        compares.passed = report.passed
    if report.when != "teardown" or compares is None or not item.config.option.update_golden:
        return
    noted = {"file": os.path.relpath(compares.path), "changes": compares.changes}
    setattr(report, _ATTRIBUTE, noted)


class GoldenSummary:
    """Says at the end of a session which values were written."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._noted: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        noted = getattr(report, _ATTRIBUTE, None)
        if noted is not None:
            self._noted.append(noted)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._config.option.update_golden:
            return
        terminalreporter.section("golden values")
        for noted in sorted(self._noted, key=lambda noted: noted["file"]):
            for name, table in noted["changes"].items():
                what = f"{noted['file']} [{name}]" if name else noted["file"]
                terminalreporter.write_line(f"{'changed' if table else 'new'}: {what}")
                if table:
                    terminalreporter.write_line(table)
        if not any(noted["changes"] for noted in self._noted):
            terminalreporter.write_line("all values are as they were")
