"""Renames the files of a checkpoint when all of them are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.tf_internals import file_io

_SUFFIX = ".unfinished"


@contextlib.contextmanager
def appearing_at_once(prefix: str) -> Iterator[str]:
    """Yields a prefix to write to, and moves the files to `prefix` if nothing was raised.

    A killed process leaves either the old files or the new ones, and unfinished files, which
    `remove_unfinished` removes. If the same checkpoint exists (its index holds a checksum of every
    tensor), it stays, so that a restart which saves the step it restored never touches it.

    Yields `prefix` itself where the file system cannot move files, or has no such directory.
    """
    directory, name = os.path.split(prefix)
    if not file_io.has_atomic_move(directory or "."):
        yield prefix
        return
    unfinished = os.path.join(directory, f".{name}{_SUFFIX}")
    try:
        if tf.io.gfile.exists(unfinished):
            tf.io.gfile.rmtree(unfinished)
        tf.io.gfile.mkdir(unfinished)  # no parents: the save names a missing one
    except tf.errors.NotFoundError:
        yield prefix
        return
    try:
        yield os.path.join(unfinished, name)
        _move(unfinished, directory)
    finally:
        with contextlib.suppress(tf.errors.OpError):  # the first error says more
            tf.io.gfile.rmtree(unfinished)


def _move(source: str, directory: str) -> None:
    """Moves files; the index last, since readers look for it first."""
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
    """Removes unfinished files of killed processes from `directory`."""
    if not tf.io.gfile.isdir(directory):
        return
    for name in tf.io.gfile.listdir(directory):
        name = name.rstrip("/")
        if name.startswith(".") and name.endswith(_SUFFIX):
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.rmtree(os.path.join(directory, name))
