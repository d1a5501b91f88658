"""The layout of the tests: it follows the package's, and suites share by `support` alone."""

from __future__ import annotations

import pathlib
import re

from support import TESTS

import tpu_estimator_compat

OF_NO_ROOM = {
    "bad_input",
    "benchmarks",
    "clients",
    "conformance",
    "docs",
    "examples",
    "faults",
    "installing",
    "parity",
    "support",
    "tpu_sim",
}
"""Folders of tests that are about the whole package."""

SOURCES = sorted(TESTS.rglob("*.py"))
IMPORT = re.compile(r"^ *(?:from|import) +(\w+)(.*)$", re.MULTILINE)
"""Also in the scripts that tests start, which are strings; relative imports stay in their suite."""


def suite(path: pathlib.Path) -> str:
    """The folder directly below the tests."""
    return path.relative_to(TESTS).parts[0]


def suites_with(module: str) -> set[str]:
    """Where a module of this name is: packages by their own, others by that of their folder."""
    if (TESTS / module / "__init__.py").exists():
        return {module}
    packages = {path.parent for path in SOURCES if path.parents[1] != TESTS}
    places = {*SOURCES, *packages}
    return {suite(path) for path in places if path.stem == module}


def test_folders_are_rooms_of_the_package():
    [package] = tpu_estimator_compat.__path__
    rooms = {path.name for path in pathlib.Path(package).iterdir() if path.is_dir()}
    folders = {path.name for path in TESTS.iterdir() if any(path.glob("**/*.py"))}
    assert folders - OF_NO_ROOM <= rooms
    assert folders >= OF_NO_ROOM


def test_no_suite_imports_from_another():
    found = [
        f"{path.relative_to(TESTS)}: {module}{rest}"
        for path in SOURCES
        for module, rest in IMPORT.findall(path.read_text())
        if (there := suites_with(module)) and not there & {suite(path), "support"}
    ]
    assert found == []


def test_no_test_is_imported():
    tests = {path.stem for path in SOURCES if path.stem.startswith("test_")}
    found = [
        f"{path.relative_to(TESTS)}: {line}"
        for path in SOURCES
        for line in re.findall(r"^ *(?:from|import) .*$", path.read_text(), re.MULTILINE)
        if tests & set(re.findall(r"\w+", line))
    ]
    assert found == []
