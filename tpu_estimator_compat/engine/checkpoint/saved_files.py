"""Renames the files of a checkpoint when all of them are complete, and on the disk."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import tensorflow as tf

from tpu_estimator_compat.engine.runtime import user_files
from tpu_estimator_compat.tf_internals import file_io

# Folders of earlier releases have no token.
_UNFINISHED = re.compile(
    rf"\.(?P<checkpoint>.+-\d+(\.input-\d{{5}}-of-\d{{5}})?)\.unfinished(-{user_files.TOKEN})?"
)
_TEMPORARY = re.compile(r"(checkpoint(_\w+)?|graph\.pbtxt|.+-\d+\.meta)(\.tmp[0-9a-f]{32}){1,2}")
"""Temporary names of files in a model_dir, until they are complete."""


@contextlib.contextmanager
def appearing_at_once(prefix: str) -> Iterator[str]:
    """Yields a prefix to write to, and moves the files to `prefix` if nothing was raised.

    A killed process or a power failure leaves either the old files or the new ones, and unfinished
    files, which `remove_unfinished` removes; files are synced to the disk before they are moved. An
    existing checkpoint with the same bytes stays untouched, as when a restart saves the step that
    it restored. Yields `prefix` itself where the file system cannot move files atomically, or the
    directory does not exist.
    """
    directory, name = os.path.split(prefix)
    unfinished = os.path.join(directory, f".{name}.unfinished-{user_files.token()}")
    try:
        moves = file_io.has_atomic_move(directory or ".")
        if moves:
            tf.io.gfile.mkdir(unfinished)  # not makedirs: the save's error names a missing folder
    except tf.errors.NotFoundError:
        moves = False
    if not moves:
        yield prefix
        return
    try:
        yield os.path.join(unfinished, name)
        _move(unfinished, directory)
    finally:
        with contextlib.suppress(tf.errors.OpError, OSError):  # the first error says more
            user_files.remove_tree(unfinished)


def _move(source: str, directory: str) -> None:
    """Moves files; the index last, since readers look for it first."""
    names = sorted(tf.io.gfile.listdir(source), key=lambda n: (n.endswith(".index"), n))
    targets = [os.path.join(directory, n) for n in names]
    if _are_there(source, directory, names):
        user_files.sync([*targets, directory])  # their writer may not have done so
        return
    user_files.sync(os.path.join(source, n) for n in names)
    for name, target in zip(names, targets, strict=True):
        tf.io.gfile.rename(os.path.join(source, name), target, overwrite=True)
    user_files.sync([directory])


def _are_there(source: str, directory: str, names: list[str]) -> bool:
    pairs = [(os.path.join(source, n), os.path.join(directory, n)) for n in reversed(names)]
    return all(
        tf.io.gfile.exists(there)
        and not user_files.is_link(there)
        and user_files.same_content(new, there)
        for new, there in pairs
    )


def remove_unfinished(directory: str) -> None:
    """Removes unfinished files of killed processes from `directory`, and nothing else."""
    if not tf.io.gfile.isdir(directory):
        return
    for name in tf.io.gfile.listdir(directory):
        path = os.path.join(directory, name.rstrip("/"))
        if _TEMPORARY.fullmatch(name):
            user_files.remove_own_file(path)
        elif found := _UNFINISHED.fullmatch(name.rstrip("/")):
            _remove_if_own(path, found["checkpoint"])


def _remove_if_own(folder: str, checkpoint: str) -> None:
    """Removes a folder that holds nothing but files of a checkpoint."""
    if user_files.is_link(folder) or not tf.io.gfile.isdir(folder):
        return
    with contextlib.suppress(tf.errors.NotFoundError, FileNotFoundError):
        own = re.compile(re.escape(checkpoint) + r"(\.(index|meta|data-)[^/]*|_temp(_\w+)?/?)")
        if all(own.fullmatch(name) for name in tf.io.gfile.listdir(folder)):
            user_files.remove_tree(folder)
