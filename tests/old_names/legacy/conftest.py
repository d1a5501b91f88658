import json
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


def environment(*folders: pathlib.Path) -> dict[str, str]:
    """That of processes that import this package, and leave no bytecode behind."""
    path = python_path.joined(ROOT, *folders)
    found = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return {**found, "TF_CPP_MIN_LOG_LEVEL": "3"}


def installed(folder, name, names, summary="", **direct_url):
    """Writes what an installer leaves of a distribution."""
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nSummary: {summary}\n"
    )
    (metadata / "top_level.txt").write_text("\n".join(names))
    if direct_url:
        (metadata / "direct_url.json").write_text(json.dumps(direct_url))
