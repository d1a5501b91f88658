"""Work that is done once in a session of tests, by whichever worker of pytest-xdist asks first."""

import fcntl
import os
import pathlib
from collections.abc import Callable

import pytest


def shared(
    tmp_path_factory: pytest.TempPathFactory, key: str, make: Callable[[pathlib.Path], None]
) -> pathlib.Path:
    """A directory that `make` filled once in this session, whichever worker asked first."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    root = base / "shared" / key
    root.mkdir(parents=True, exist_ok=True)
    finished = root / "finished"
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not finished.exists():
            error = ""
            try:
                make(root)
            except Exception as raised:
                error = f"{type(raised).__name__}: {raised}"
            finished.write_text(error)
    if finished.read_text():
        raise RuntimeError(finished.read_text())
    return root
