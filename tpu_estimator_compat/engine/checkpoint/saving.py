"""Saves that survive a power failure and a kill: the newest checkpoint is always whole.

The files of a checkpoint appear at once, when all of them are complete and on the disk. The file
`checkpoint` names only a checkpoint that is on the disk, and is there itself before an older one is
deleted. TensorFlow's Saver writes and deletes: only files of that checkpoint, even if its path is
also a glob pattern, and none outside the folder that is saved to.
"""

from __future__ import annotations

import contextlib
import functools
import os
import uuid
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import state
from tpu_estimator_compat.engine.files import removal, user_files
from tpu_estimator_compat.tf_internals import file_io

BESIDE = "_write_beside"
"""The attribute of a saver with a function that its next `save` calls with the new checkpoint."""


def durable(saver: Any) -> Any:
    """The same saver, with this module's `save` unless its class or the object overrides `save`."""
    is_plain = getattr(type(saver), "save", None) is tf.compat.v1.train.Saver.save
    if is_plain and "save" not in vars(saver):
        saver.save = functools.partial(save, saver)
    return saver


def save(
    saver: Any,
    sess: Any,
    save_path: Any,
    global_step: Any = None,
    latest_filename: str | None = None,
    meta_graph_suffix: str = "meta",
    write_meta_graph: bool = True,
    write_state: bool = True,
    *others: Any,
    **more: Any,
) -> str | None:
    """`Saver.save`, with the same arguments and result, in this module's order."""
    given = (sess, save_path, global_step, latest_filename, meta_graph_suffix, write_meta_graph)
    path: str | None = tf.compat.v1.train.Saver.save(saver, *given, False, *others, **more)
    if path is None or not write_state:
        return path
    folder = os.path.dirname(tf.compat.as_str(save_path))
    if write_meta_graph and tf.io.gfile.exists(f"{path}.{meta_graph_suffix}"):
        user_files.sync([f"{path}.{meta_graph_suffix}"])
    if write_beside := vars(saver).pop(BESIDE, None):
        write_beside(path)  # before the checkpoint is named, and so restored
    saver._RecordLastCheckpoint(path)
    _name(saver, path, folder, latest_filename or "checkpoint")
    saver._checkpoints_to_be_deleted = [
        (user_files.literal(old), time)
        for old, time in saver._checkpoints_to_be_deleted
        if _is_in(old, folder)
    ]
    saver._MaybeDeleteOldCheckpoints(meta_graph_suffix=meta_graph_suffix)
    return path


def _name(saver: Any, path: str, folder: str, file: str) -> None:
    """Writes the file `checkpoint`; a local one is renamed to that name after it is synced."""
    written = f"{file}.tmp{uuid.uuid4().hex}" if user_files.is_local(folder) else file
    tf.__internal__.train.update_checkpoint_state(
        save_dir=folder,
        model_checkpoint_path=path,
        all_model_checkpoint_paths=saver.last_checkpoints,
        latest_filename=written,
        save_relative_paths=saver._save_relative_paths,
    )
    if written != file:
        folder = user_files.local(folder)
        user_files.sync([os.path.join(folder, written)])
        os.replace(os.path.join(folder, written), os.path.join(folder, file))
        user_files.sync([folder])


def _is_in(checkpoint: str, folder: str) -> bool:
    """Whether a checkpoint is in the folder: a copied file `checkpoint` may name other folders."""
    parent = os.path.dirname(checkpoint)
    if not user_files.is_local(checkpoint):
        return parent.rstrip("/") == folder.rstrip("/")
    return os.path.realpath(user_files.local(parent)) == os.path.realpath(user_files.local(folder))


def recover_last_checkpoints(saver: Any, model_dir: str | None) -> None:
    """Adds the checkpoints of `model_dir` to the saver's list, so that it deletes old ones."""
    paths = state.named(model_dir, all_paths=True)
    if paths == [user_files.literal(path) for path in paths]:
        saver.recover_last_checkpoints(paths)
        return
    times = [(p, _time(p)) for p in paths if state.exists(p)]  # TensorFlow takes p for a pattern
    saver.set_last_checkpoints_with_time(times)


def _time(checkpoint: str) -> float:
    pattern = user_files.literal(checkpoint)
    [file, *_] = tf.io.gfile.glob(f"{pattern}.index") or tf.io.gfile.glob(pattern)
    return float(tf.io.gfile.stat(file).mtime_nsec / 1e9)


@contextlib.contextmanager
def appearing_at_once(prefix: str) -> Iterator[str]:
    """Yields a prefix to write to, and moves the files to `prefix` if nothing was raised.

    A killed process or a power failure leaves either the old files or the new ones, and unfinished
    files, which `remove_unfinished` removes; files are synced to the disk before they are moved.
    Yields `prefix` itself where the file system cannot move files atomically, or the directory does
    not exist.
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
            removal.remove(unfinished, "unfinished")


def _move(source: str, directory: str) -> None:
    """Moves files; the index last, since readers look for it first."""
    names = sorted(tf.io.gfile.listdir(source), key=lambda n: (n.endswith(".index"), n))
    targets = [os.path.join(directory, n) for n in names]
    user_files.sync(os.path.join(source, n) for n in names)
    for name, target in zip(names, targets, strict=True):
        tf.io.gfile.rename(os.path.join(source, name), target, overwrite=True)
    user_files.sync([directory])


def remove_unfinished(directory: str) -> None:
    """Removes unfinished files of killed processes from `directory`, and nothing else."""
    if not tf.io.gfile.isdir(directory):
        return
    remove_orphans(directory)
    for name in tf.io.gfile.listdir(directory):
        path = os.path.join(directory, name.rstrip("/"))
        if removal.named(name, "list") and not tf.io.gfile.isdir(path):
            removal.remove(path, "list")
        elif removal.named(name, "save"):
            removal.remove(path, "save")


def remove_orphans(directory: str) -> None:
    """Removes positions of the input in `directory` whose checkpoint was removed."""
    for name in tf.io.gfile.listdir(directory):
        found = removal.named(name, "position")
        if found and not state.exists(os.path.join(directory, found["checkpoint"])):
            removal.remove(os.path.join(directory, name), "position")
