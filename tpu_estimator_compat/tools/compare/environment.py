"""Environments with the original TPUEstimator: made once, kept in the user's cache directory."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tpu_estimator_compat.engine.files import cache_files, removal
from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.tools import child_process

_ORIGINALS = pathlib.Path(__file__).with_name("originals")


class Unavailable(Exception):
    """An environment cannot be made on this machine; the message says why."""


@dataclasses.dataclass(frozen=True)
class Release:
    """A TensorFlow release with the original, and its Python versions, the preferred one first."""

    tensorflow: str
    requirements: tuple[str, ...]
    pythons: tuple[tuple[int, int], ...]


RELEASES = {
    "2.15": Release(
        "2.15.1", ("tensorflow-cpu==2.15.1", "tensorflow-estimator==2.15.0"), ((3, 11), (3, 10))
    ),
    "1.15": Release(
        "1.15.5",
        # TensorFlow's metadata allows later releases of protobuf and NumPy, which break it.
        ("tensorflow==1.15.5", "tensorflow-estimator==1.15.1", "protobuf<3.21", "numpy<1.19"),
        ((3, 7),),
    ),
}


def find_or_make(
    release: Release,
    packages: Sequence[str] = (),
    cache: pathlib.Path | None = None,
) -> str:
    """The interpreter of the environment with a release; makes the environment if need be.

    Args:
      packages: more requirements for pip, such as "tensorflow-datasets".
    """
    base, version = find_python(release)
    wanted = "\n".join((*release.requirements, *sorted(packages))) + "\n"
    name = f"parity-tf{release.tensorflow}-py{version[0]}.{version[1]}"
    if packages:
        name += "-" + hashlib.sha256(wanted.encode()).hexdigest()[:8]
    if cache is None and not cache_files.is_private():
        raise Unavailable(f"the cache directory {cache_files.root()} is not this user's alone.")
    home = (cache or cache_files.root()) / name
    with lock(home.with_name(home.name + ".lock")):
        marker = home / "finished"
        if not marker.exists():
            pinned = pins(f"tf{release.tensorflow}-py{version[0]}.{version[1]}")
            with Activity("Making the original's environment: it takes minutes, and a gigabyte"):
                make(base, home, pinned, packages)
            marker.write_text(wanted)
    return str(home / "bin" / "python")


def check_interpreter(path: str, what: str) -> str:
    """The path that a user gave by the option `what`; Unavailable unless it is an executable."""
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        raise Unavailable(f"{what}={path} is not an executable. Give the path of a Python.")
    return path


def find_python(release: Release) -> tuple[str, tuple[int, int]]:
    """A Python for a release, with its version: this one or one on PATH; else Unavailable."""
    if sys.version_info[:2] == release.pythons[0]:
        return sys.executable, release.pythons[0]
    for version in release.pythons:
        name = shutil.which(f"python{version[0]}.{version[1]}")
        if name and python_version(name) == version:
            return name, version
    names = " or ".join(f"python{a}.{b}" for a, b in release.pythons)
    raise Unavailable(f"TensorFlow {release.tensorflow} needs {names}, and none is on PATH.")


def python_version(executable: str) -> tuple[int, int] | None:
    """The version that an executable reports, None if it does not run, as some shims do not."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        done = subprocess.run([executable, "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    major, minor = done.stdout.split()
    return int(major), int(minor)


def make(
    python: str,
    home: pathlib.Path,
    pinned: pathlib.Path,
    packages: Sequence[str] = (),
) -> None:
    """Makes a virtual environment in place of any earlier one.

    `pinned` is a file of requirements with hashes; its versions hold for `packages`, too.
    """
    removal.remove(home, "environment")
    run([python, "-m", "venv", str(home)])
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--prefer-binary"]
    run([*install, "--require-hashes", "-r", str(pinned)])
    if packages:
        versions = home / "constraints.txt"
        found = re.findall(r"^[\w.-]+==\S+", pinned.read_text(), re.MULTILINE)
        versions.write_text("\n".join(found) + "\n")
        run([*install, "-c", str(versions), *packages])


def run(command: list[str]) -> str:
    """Returns a command's output; Unavailable where it fails."""
    with child_process.temporary_folder("compare_log_") as folder:
        process = child_process.start(command, folder / "log")
        ending = child_process.wait(process)
        written = (folder / "log").read_text(errors="replace")
    if ending.code != 0:
        # The last lines of pip's output carry the reason.
        tail = " ".join(written.strip().splitlines()[-3:])
        raise Unavailable(f"`{' '.join(command[-4:])}` failed: {tail}")
    return written


@contextlib.contextmanager
def lock(path: pathlib.Path) -> Iterator[None]:
    """Holds an exclusive lock on a file until the context or the process ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise Unavailable(f"the cache directory cannot be written ({error}).") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def pins(name: str) -> pathlib.Path:
    """The file of all versions and hashes of an environment, written by `uv pip compile`."""
    return _ORIGINALS / f"{name}.txt"
