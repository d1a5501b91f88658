"""Golden values in a session of pytest: the fixture, and the list of files at its end."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tpu_estimator_compat.testing.golden.comparison import Golden

_GOLDEN = pytest.StashKey["Golden"]()
_ATTRIBUTE = "tpu_estimator_compat_golden"
"""The attribute of a report that lists written values: pytest-xdist sends attributes, too."""


def fixture(request: pytest.FixtureRequest) -> Iterator[Golden]:
    from tpu_estimator_compat.testing.golden import comparison, files

    item: pytest.Item = request.node
    path = files.file_of(item.path, item.nodeid)
    compares = comparison.Golden(path, item.nodeid, item.config.option.update_golden)
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
    from tpu_estimator_compat.testing.golden import comparison

    written = compares.changes.items()
    changes = {name: comparison.table(rows) if rows else "" for name, rows in written}
    noted = {"file": str(compares.path), "changes": changes, "unused": compares.unused_names()}
    setattr(report, _ATTRIBUTE, noted)


class GoldenSummary:
    """Says at the end of a session which files were written, and which no test uses."""

    def __init__(self, config: pytest.Config):
        self._config = config
        self._noted: list[dict[str, Any]] = []
        self._tests: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests.add(report.nodeid)
        noted = getattr(report, _ATTRIBUTE, None)
        if noted is not None:
            self._noted.append(noted)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self._config.option.update_golden:
            return
        terminalreporter.section("golden values")
        for noted in sorted(self._noted, key=lambda noted: noted["file"]):
            for name, table in noted["changes"].items():
                what = self._shown(noted["file"], name)
                terminalreporter.write_line(f"{'changed' if table else 'new'}: {what}")
                if table:
                    terminalreporter.write_line(table)
            for name in noted["unused"]:
                terminalreporter.write_line(f"unused: {self._shown(noted['file'], name)}")
        if not any(noted["changes"] for noted in self._noted):
            terminalreporter.write_line("all values are as they were")
        for path in self._unused_files():
            terminalreporter.write_line(f"unused: {self._shown(str(path))} (not removed)")

    def _shown(self, file: str, name: str = "") -> str:
        path = pathlib.Path(file)
        if path.is_relative_to(self._config.rootpath):
            path = path.relative_to(self._config.rootpath)
        return f"{path} [{name}]" if name else str(path)

    def _unused_files(self) -> list[pathlib.Path]:
        """Files of no test, in the folders of modules that were run as a whole."""
        from tpu_estimator_compat.testing.golden import files

        if self._is_selection():
            return []
        root = self._config.rootpath
        of_tests = {files.file_of(root / test.partition("::")[0], test) for test in self._tests}
        folders = {path.parent for path in of_tests if path.parent.is_dir()}
        return sorted({path for folder in folders for path in folder.glob("*.txt")} - of_tests)

    def _is_selection(self) -> bool:
        """Whether tests of a module may have been left out."""
        option = self._config.option
        names = ("keyword", "markexpr", "deselect", "lf", "stepwise", "maxfail")
        selects = any(getattr(option, name, None) for name in names)
        return selects or any("::" in arg for arg in self._config.args)
