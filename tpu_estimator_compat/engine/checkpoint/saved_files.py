"""Lets the files of a checkpoint take their names only when all of them are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.tf_internals import file_io

_SUFFIX = ".unfinished"


@contextlib.contextmanager
def appearing_at_once(prefix: str) -> Iterator[str]:
    """Gives a prefix to write to; the files move to `prefix` at the end, if nothing was raised.

    A process that is killed leaves the files that were there, or the new ones; what it began is
    swept by `remove_unfinished`. Where the same checkpoint is there already, it stays: the index
    holds a checksum of every tensor. So a restart that saves what it has just restored never
    touches it.

    Args:
      prefix: of the files of a checkpoint, `<directory>/<name>`.

    Yields:
      The prefix to write to. It is `prefix` itself where the file system cannot move files, or has
      no such directory.

    Raises:
      tf.errors.OpError: the files could not be moved.
    """
    directory, name = os.path.split(prefix)
    if not file_io.has_atomic_move(directory or "."):
        yield prefix
        return
    unfinished = os.path.join(directory, f".{name}{_SUFFIX}")
    try:
        if tf.io.gfile.exists(unfinished):
            tf.io.gfile.rmtree(unfinished)
        tf.io.gfile.mkdir(unfinished)  # not its parents: the save names what is missing
    except tf.errors.NotFoundError:
        yield prefix
        return
    try:
        yield os.path.join(unfinished, name)
        _move(unfinished, directory)
    finally:
        with contextlib.suppress(tf.errors.OpError):  # the error that led here says more
            tf.io.gfile.rmtree(unfinished)


def _move(source: str, directory: str) -> None:
    """Moves files; the index last, since without it the others are nothing."""
    names = sorted(tf.io.gfile.listdir(source), key=lambda n: (n.endswith(".index"), n))
    if _same_index(source, directory, names):
        return
    for name in names:
        tf.io.gfile.rename(
            os.path.join(source, name), os.path.join(directory, name), overwrite=True
        )


def _same_index(source: str, directory: str, names: list[str]) -> bool:
    indexes = [n for n in names if n.endswith(".index")]
    there = [n for n in names if tf.io.gfile.exists(os.path.join(directory, n))]
    return (
        bool(indexes)
        and there == names
        and all(
            _content(os.path.join(source, n)) == _content(os.path.join(directory, n))
            for n in indexes
        )
    )


def _content(path: str) -> bytes:
    with tf.io.gfile.GFile(path, "rb") as file:
        content: bytes = file.read()
    return content


def remove_unfinished(directory: str) -> None:
    """Removes what saves of killed processes left in `directory`."""
    if not tf.io.gfile.isdir(directory):
        return
    for name in tf.io.gfile.listdir(directory):
        name = name.rstrip("/")
        if name.startswith(".") and name.endswith(_SUFFIX):
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.rmtree(os.path.join(directory, name))
