"""Replaces, syncs and finds files and folders of users."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import tempfile
import threading
import uuid
import weakref
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.files import removal

_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)  # of file systems without fsync
_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNKNOWN = tf.errors.UnknownError
_PATTERN = re.compile(r"[*?\[\]\\]")
_SHARDS = re.compile(r"-\?{5}-of-\d{5}")  # the end of a checkpoint's name in TF's first format
Path = str | bytes | os.PathLike[str]

_MOST_FOLDERS = 32  # kept open for `readable`
_descriptors: dict[str, int] = {}
_lock = threading.Lock()


is_local, local, is_link = removal.is_local, removal.local, removal.is_link


def token() -> str:
    """A random part for a unique name; it matches `removal.TOKEN`."""
    return uuid.uuid4().hex[:8]


def replace_folder(new: str, path: str) -> None:
    """Moves the folder `new` to `path`, with what only the old folder has; removes that last.

    If a move fails, the old folder comes back. A killed process leaves it beside `path`, under a
    name that ends in `.replaced-<token>`. Where `path` is a link, the new folder takes the link's
    place, and the link's target stays.
    """
    aside = f"{path}.replaced-{token()}"
    there = is_link(path) or tf.io.gfile.exists(path)
    if there:
        _keep_others(path, new)
        tf.io.gfile.rename(path, aside)
    try:
        tf.io.gfile.rename(new, path)
    except BaseException as error:
        if there:
            _put_back(aside, path, error)
        raise
    sync([os.path.dirname(path)])
    if there:
        removal.remove(aside, "replaced")


def _keep_others(old: str, new: str) -> None:
    """Adds to the folder `new` what only `old` has; local files get a second name."""
    for parent, folders, names in (os.walk if is_local(old) else tf.io.gfile.walk)(old):
        inside = os.path.join(new, os.path.relpath(parent, old))
        tf.io.gfile.makedirs(inside)
        for name in (*names, *folders):
            there, path = os.path.join(inside, name), os.path.join(parent, name)
            is_file = name in names or is_link(path)
            if is_file and not is_link(there) and not tf.io.gfile.exists(there):
                copy = functools.partial(os.link, follow_symlinks=False)
                (copy if is_local(old) else tf.io.gfile.copy)(path, there)


def _put_back(aside: str, path: str, error: BaseException) -> None:
    try:
        tf.io.gfile.rename(aside, path)
    except tf.errors.OpError:
        error.add_note(f"What was at {path} is at {aside}, and could not be moved back.")


def sync(paths: Iterable[str]) -> None:
    """Makes the system write local files, or the names in local folders, to the disk.

    Does nothing where the user has switched it off. Raises an OpError if the write fails.
    """
    for path in paths:
        if not is_local(path) or not environment.syncs_files():
            continue
        try:
            _sync(local(path))
        except OSError as error:
            if error.errno not in _NO_SYNC:
                kind = tf.errors.ResourceExhaustedError if error.errno in _FULL else _UNKNOWN
                message = f"Could not write {path} to the disk: {error}"
                raise kind(None, None, message) from None


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: str) -> None:
    if is_local(folder):
        for parent, _, names in os.walk(local(folder)):
            sync(os.path.join(parent, name) for name in names)
            sync([parent])


def literal(path: Path) -> str:
    """The glob pattern that matches only `path`, for `tf.io.gfile.glob` and TensorFlow itself.

    The end `-?????-of-00002`, which names all files of a checkpoint in TF's first format, stays.
    """
    path = os.fsdecode(path)
    found = _SHARDS.search(path)
    end = found[0] if found and found.end() == len(path) else ""
    return _PATTERN.sub(r"\\\g<0>", path.removesuffix(end)) + end


def readable(path: Path) -> str:
    """A path of the checkpoint `path` whose folder has no glob characters.

    TensorFlow reads paths of checkpoints as patterns. Where the folder has such characters, the
    result leads through an open descriptor, and is valid in this process only.
    """
    path = os.fsdecode(path)
    folder, name = (path, "") if os.path.isdir(path) else os.path.split(path)
    if not (is_local(path) and _PATTERN.search(folder) and os.path.isdir(folder)):
        return path
    with _lock:
        descriptor = _descriptors.pop(folder, None)
        if descriptor is None or not _leads_to(descriptor, folder):
            _close(descriptor)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        _descriptors[folder] = descriptor  # the most recently used comes last
        if len(_descriptors) > _MOST_FOLDERS:
            _close(_descriptors.pop(next(iter(_descriptors))))
        return os.path.join(_opened(descriptor), name)


def held(checkpoint: str, owner: Any) -> str | None:
    """A path of a local checkpoint by which it can be read while `owner` lives, even if removed.

    The files stay open; the path has links to them, and is valid in this process only. None where a
    file is missing, or the system cannot do so.
    """
    index = f"{checkpoint}.index"
    files = tf.io.gfile.glob([literal(index), f"{literal(checkpoint)}.data-*"])
    with contextlib.suppress(OSError), contextlib.ExitStack() as kept:
        folder = kept.enter_context(tempfile.TemporaryDirectory(prefix="held_"))
        for file in files:
            descriptor = os.open(local(file), os.O_RDONLY)
            kept.callback(os.close, descriptor)
            os.symlink(_opened(descriptor), os.path.join(folder, os.path.basename(file)))
        path = os.path.join(folder, os.path.basename(checkpoint))
        if tf.io.gfile.exists(index) and os.path.exists(f"{path}.index"):  # it goes first
            weakref.finalize(owner, kept.pop_all().close)
            return path
    return None


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        with contextlib.suppress(OSError):  # the user's code may have closed it
            os.close(descriptor)


def _opened(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _leads_to(descriptor: int, folder: str) -> bool:
    """Whether an open folder is still open, and the one at `folder`."""
    with contextlib.suppress(OSError):
        return os.path.samefile(_opened(descriptor), folder)
    return False
