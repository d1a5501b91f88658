"""The places of what is read and written: checked before the seconds of work."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

from tpu_estimator_compat.engine.files import removal


def check_saved_model(path: str) -> None:
    """Raises ValueError for a local folder that has no SavedModel."""
    if removal.is_local(path) and not any(
        os.path.isfile(os.path.join(path, name)) for name in ("saved_model.pb", "saved_model.pbtxt")
    ):
        raise ValueError(
            f"There is no SavedModel in {path!r}. Name the folder that has saved_model.pb, such as "
            "exports/1543000000, or a script."
        )


def targets(out: str | os.PathLike[str], *, replace: bool) -> tuple[pathlib.Path, pathlib.Path]:
    """The files to write; raises ValueError or OSError where that must not or cannot be."""
    path = pathlib.Path(out)
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ValueError(
            f"The file of the model must be a Python module, NAME.py. Got {os.fspath(out)!r}."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r} for {os.fspath(out)!r}.")
    found = path, path.with_suffix(".weights.h5")
    there = [str(each) for each in found if os.path.lexists(each)]
    if there and not replace:
        raise FileExistsError(
            f"{' and '.join(there)} already there. Name another file, or replace what is there by "
            "--replace (in Python, replace=True)."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"The folder {str(path.parent)!r} is write-protected.")
    return found


def place(made: Sequence[pathlib.Path], placed: Sequence[pathlib.Path]) -> None:
    """Puts files into their places, all or none, each complete: the weights first."""
    new = [path.with_name(f".{path.name}.new-{os.urandom(4).hex()}") for path in placed]
    try:
        for source, path in zip(made, new, strict=True):
            with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
                file.write(source.read_bytes())
                file.flush()
                os.fsync(file.fileno())
        for path, target in reversed(list(zip(new, placed, strict=True))):
            os.replace(path, target)
    finally:
        for path in new:
            removal.remove(path, "unfinished")
