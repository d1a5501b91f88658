"""Parity environment: an interpreter that has the original, made once and kept between runs.

`original` is a pytest fixture, visible to every test. The environment is a virtual one with
`tensorflow-cpu==2.15.1`, which brings `tensorflow-estimator==2.15.0`, in the user's cache
directory. Set TPU_ESTIMATOR_COMPAT_ORIGINAL_PYTHON to an interpreter that has them to use that
one instead.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

from support import probing
from support.environments import Unavailable, cache_directory, lock
from support.sharing import shared

TENSORFLOW = "2.15.1"
REQUIREMENTS = (f"tensorflow-cpu=={TENSORFLOW}", "tensorflow-estimator==2.15.0")
OVERRIDE = "TPU_ESTIMATOR_COMPAT_ORIGINAL_PYTHON"
PYTHONS = ((3, 11), (3, 10))
"""Versions of Python that TensorFlow 2.15 has wheels for, the preferred one first."""


@dataclasses.dataclass(frozen=True)
class Original:
    """The published TPUEstimator.

    Attributes:
        python: Path of an interpreter that has it.
        tmp_path_factory: Of pytest; says where answers are kept.
    """

    python: str
    tmp_path_factory: pytest.TempPathFactory

    def run(self, *script: str | pathlib.Path, given: Any = None, **options: Any) -> Any:
        """What `probing.run` gives of a script and its arguments; made once in a session."""
        key = hashlib.sha256(json.dumps([list(map(str, script)), given]).encode()).hexdigest()

        def make(folder: pathlib.Path) -> None:
            found = probing.run(self.python, *script, given=given, **options)
            (folder / "answer").write_text(json.dumps(found))

        folder = shared(self.tmp_path_factory, f"original-{key}", make)
        return json.loads((folder / "answer").read_text())


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The original; skips where it cannot be had, fails under CI."""
    return Original(require(), tmp_path_factory)


def require() -> str:
    """Path of an interpreter with the original; skips or fails as the fixture does."""
    try:
        return find_or_make()
    except Unavailable as error:
        reason = f"no environment with the original TPUEstimator: {error}"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def find_or_make(cache: pathlib.Path | None = None) -> str:
    """The interpreter that OVERRIDE names, else that of the cached environment.

    Args:
        cache: Directory to keep environments in; the user's cache directory if None.

    Raises:
        Unavailable: There is no fitting Python, or the packages cannot be installed.
    """
    override = os.environ.get(OVERRIDE)
    if override:
        if not os.access(override, os.X_OK):
            raise Unavailable(f"{OVERRIDE}={override} is not an executable.")
        return override
    base, version = find_python()
    cache = cache or cache_directory()
    home = cache / f"parity-tf{TENSORFLOW}-py{version[0]}.{version[1]}"
    with lock(home.with_name(home.name + ".lock")):
        marker = home / "finished"
        if not marker.exists():
            make(base, home)
            marker.write_text("\n".join(REQUIREMENTS) + "\n")
    return str(home / "bin" / "python")


def find_python() -> tuple[str, tuple[int, int]]:
    """A Python that TensorFlow 2.15 runs on: this one if it is, else one on PATH."""
    if sys.version_info[:2] == PYTHONS[0]:
        return sys.executable, PYTHONS[0]
    for version in PYTHONS:
        name = shutil.which(f"python{version[0]}.{version[1]}")
        if name and python_version(name) == version:
            return name, version
    names = " or ".join(f"python{a}.{b}" for a, b in PYTHONS)
    raise Unavailable(f"TensorFlow {TENSORFLOW} needs {names}, and none is on PATH.")


def python_version(executable: str) -> tuple[int, int] | None:
    """The version that an executable reports, None if it does not run (a shim)."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([executable, "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def make(python: str, home: pathlib.Path) -> None:
    """Makes the environment afresh; what a broken-off attempt left is removed."""
    shutil.rmtree(home, ignore_errors=True)
    run([python, "-m", "venv", str(home)])
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--only-binary=:all:", *REQUIREMENTS])


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        # The last lines of pip's output carry the reason.
        tail = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise Unavailable(f"`{' '.join(command[-4:])}` failed: {tail}")
