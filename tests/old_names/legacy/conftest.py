import os
import pathlib
import subprocess
import textwrap

import pytest
from support import python_path

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def run(tmp_path, forks):
    def of(
        source: str, *arguments: str, options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        words = ["-m", "tpu_estimator_compat", "run", *options, "script.py", *arguments]
        return forks.run(*words, cwd=tmp_path, env=environment())

    return of


@pytest.fixture
def python(tmp_path, forks):
    """`python(*words)` is a Python in the test's folder; gives the finished process."""

    def of(*words: str) -> subprocess.CompletedProcess[str]:
        return forks.run(*words, cwd=tmp_path, env=environment())

    return of


def environment() -> dict[str, str]:
    """That of processes that import this package, and leave no bytecode behind."""
    found = {**os.environ, "PYTHONPATH": python_path.joined(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**found, "TF_CPP_MIN_LOG_LEVEL": "3"}
