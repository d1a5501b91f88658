"""The layout of the tests: it is the package's, and suites share by `support` alone."""

import ast
import functools
import pathlib
from collections.abc import Iterator

import pytest
from support import TESTS

import tpu_estimator_compat

[_package] = tpu_estimator_compat.__path__
PACKAGE = pathlib.Path(_package)

OF_NO_ROOM = {
    "bad_input",
    "benchmarks",
    "chips",
    "clients",
    "conformance",
    "docs",
    "examples",
    "faults",
    "fuzz",
    "installing",
    "parity",
    "support",
    "tpu_sim",
}
"""Folders of tests that are about the whole package."""

SOURCES = sorted(path.relative_to(TESTS) for path in TESTS.rglob("*.py"))
IN_ROOMS = [path for path in SOURCES if path.parts[0] not in OF_NO_ROOM]
TOP = {path.name for path in TESTS.iterdir() if any(path.glob("**/*.py"))}


def judged_by(test: pathlib.Path) -> str | None:
    """The module or folder of the package that a test file is named after: the longest name."""
    folder = PACKAGE / test.parent
    names = {path.stem for path in folder.glob("*.py")} | {folder.name}
    names |= {path.name for path in folder.iterdir() if path.is_dir()}
    subject = test.stem.removeprefix("test_")
    fitting = [name for name in names if subject == name or subject.startswith(f"{name}_")]
    return max(fitting, key=len, default=None)


@functools.cache
def imports(path: pathlib.Path) -> list[tuple[int, str]]:
    """What a file imports: how far up (0 for absolute names), and the module's or module's name."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse((TESTS / path).read_text())):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.level, f"{node.module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.level, alias.name) for alias in node.names]
    return found


def test_folders_are_rooms_of_the_package():
    folders = {path.parent for path in IN_ROOMS}
    assert [str(folder) for folder in folders if not (PACKAGE / folder).is_dir()] == []
    assert TOP >= OF_NO_ROOM


@pytest.mark.parametrize(
    "path", [path for path in IN_ROOMS if path.stem.startswith("test_")], ids=str
)
def test_a_test_file_is_named_after_what_it_judges(path):
    assert judged_by(path) is not None or path.parent == pathlib.Path(".")


def test_no_suite_imports_from_another():
    def strangers(path: pathlib.Path) -> Iterator[str]:
        for level, name in imports(path):
            first = name.partition(".")[0]
            if level >= len(path.parts) or (
                level == 0 and first in TOP - {path.parts[0], "support"}
            ):
                yield name

    assert {str(path): found for path in SOURCES if (found := list(strangers(path)))} == {}


def test_no_test_is_imported():
    found = {
        str(path): name
        for path in SOURCES
        for _, name in imports(path)
        if any(part.startswith("test_") for part in name.split("."))
    }
    assert found == {}
