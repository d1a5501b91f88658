"""Reads files of a run that may be damaged: an error names the file."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.tools import regular_file


class Damaged(ValueError):
    """A file cannot be read completely; the message has its name and the reason."""


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns any error in the context, such as protobuf's, into Damaged, which names the file."""
    try:
        yield
    except Damaged:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Damaged(f"{path} cannot be read: {said}") from error


def below(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """All files below a folder, in order; Damaged where an inner folder cannot be listed."""

    def refuse(error: OSError) -> None:
        raise Damaged(f"{error.filename} cannot be listed: {error.strerror}") from error

    for parent, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (pathlib.Path(parent, name) for name in sorted(files))


def latest_checkpoint(folder: pathlib.Path) -> str | None:
    """The latest checkpoint by a folder's state file; Damaged where that checkpoint is missing."""
    named = folder / "checkpoint"
    if not named.exists():
        return None
    with reading(named):
        regular_file.check(named)
        said = tf.train.get_checkpoint_state(str(folder))
    found: str | None = said and said.model_checkpoint_path
    if not found or not state.exists(found):
        raise Damaged(f"{named} cannot be read, or names a checkpoint that is not there")
    for path in folder.iterdir():
        if path.name.startswith(f"{os.path.basename(found)}."):
            with reading(path):
                regular_file.check(path)
    return found
