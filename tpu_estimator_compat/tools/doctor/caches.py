"""Checks of the caches of compiled programs: place, permission, size, damage."""

from __future__ import annotations

import os
import pathlib
import tempfile

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import cache_files, removal
from tpu_estimator_compat.engine.jax import installation as jax_installation
from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

CHECK = "caches"
_OF_JAX = "JAX_COMPILATION_CACHE_DIR"


def check() -> list[CheckResult]:
    """The state of this package's two caches, and of JAX's own where one is set."""
    try:
        limit = environment.cache_limit()
    except ValueError as error:
        return [
            CheckResult(CHECK, Status.FAILURE, str(error), f"Unset {environment.CACHE_VARIABLE}.")
        ]
    own = {
        "jax": jax_installation.cache_directory(),
        "preflight": cache_files.directory("preflight"),
    }
    results = []
    for name, folder in own.items():
        results += _look_at(name, folder, f"; the limit of both is {limit / 1e9:g} GB")
    if given := os.environ.get(_OF_JAX):
        if not removal.is_local(given):
            text = f"{_OF_JAX}={given} is not a local folder; not checked"
            results.append(CheckResult(CHECK, Status.NOT_MADE, text))
        else:
            results += _look_at(_OF_JAX, pathlib.Path(given), "; it has no limit")
    return results


def _look_at(name: str, folder: pathlib.Path, limit: str) -> list[CheckResult]:
    try:
        files = [path for path in folder.rglob("*") if path.is_file()]
        size = sum(map(_size, files))
        _write_to(folder)
    except OSError as error:
        text = f"{name}: {folder} cannot be used: {error}"
        advice = "Programs are compiled at every start. Set XDG_CACHE_HOME to a folder of yours."
        return [CheckResult(CHECK, Status.WARNING, text, advice)]
    text = f"{name}: {folder}, writable, {len(files)} files, {size / 1e9:.2f} GB{limit}"
    damaged = [path for path in files if _is_damaged(path)]
    if not damaged:
        return [CheckResult(CHECK, Status.OK, text)]
    told = f"{text}; {len(damaged)} damaged, such as {damaged[0].name}"
    return [CheckResult(CHECK, Status.WARNING, told, f"They are compiled anew. rm -r '{folder}'")]


def _write_to(folder: pathlib.Path) -> None:
    """Writes a file to a folder, or to the one that it is to be made in, and deletes it."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    with tempfile.TemporaryFile(dir=there) as file:
        file.write(b"written")
        file.flush()


def _is_damaged(path: pathlib.Path) -> bool:
    """Whether a file of this package differs from its checksum, or a file of JAX is empty."""
    if path.suffix in (".json", ".module"):
        return not cache_files.is_whole(path)
    return path.exists() and not _size(path)  # JAX checks the checksums in its own files


def _size(path: pathlib.Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # another process has deleted it
        return 0
