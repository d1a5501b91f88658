"""The newest Python that README names, and the tests on it; all other tests have the oldest."""

import re

import pytest
from support.installations import ROOT, newest_python

LEGACY = (
    *("bytecode", "dialect", "imports", "notebook", "notebook_cells", "notebook_program"),
    *("pytest_plugin", "python_path", "script", "vendored"),
)

OF_PYTHON = (
    "engine/capture/test_user_functions.py",
    "engine/graph/test_sources.py",
    "estimator/test_tracebacks.py",
    *(f"old_names/legacy/test_{name}.py" for name in LEGACY),
    "tools/commands/test_run.py",
    "tools/doctor/test_probing.py",
    "tools/migrate",
    "tools/scan",
)
"""Tests that lean on Python's inner parts: syntax trees, bytecode, imports, frames, its words."""


@pytest.mark.slow
def test_what_leans_on_the_version_of_python():
    assert passed(*OF_PYTHON) > 100


@pytest.mark.full
@pytest.mark.minutes
def test_all_fast_tests():
    assert passed() > 1000


def passed(*files: str) -> int:
    """The number of fast tests of files that pass there; fails if one does not."""
    tests = [f"tests/{file}" for file in files or ("",)]
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    done = newest_python().run(*words, cwd=ROOT, timeout=3600)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
    return int(re.findall(r"(\d+) passed", done.stdout)[-1])
