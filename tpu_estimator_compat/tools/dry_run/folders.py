"""The folders of a dry run: each folder that the script writes to has one that stands for it."""

from __future__ import annotations

import glob
import os
import shutil
import threading

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint import latest
from tpu_estimator_compat.engine.files import user_files


class Folders:
    """Stand-ins for the user's folders, at the same paths below one folder `root`.

    `model_dir + "_export"`, `os.path.dirname(model_dir)` and the like stay below `root`, too.
    """

    def __init__(self, root: str | os.PathLike[str]):
        self._root = os.path.realpath(root)
        self._files = os.path.join(self._root, "files")
        self._started_in = os.getcwd()
        self._known: set[str] = set()
        self._removed: set[str] = set()
        self._lock = threading.RLock()
        self._copying = threading.local()

    def own(self, path: str) -> str:
        """The folder that stands for `path`; on first use, the newest checkpoint is copied there.

        A folder below the root, such as one that this method returned, stands for itself.
        """
        whole = _whole(path)
        if _is_below(whole, self._root):
            return path
        own = self._of(whole)
        with self._lock:
            if whole not in self._known:
                self._begin(whole, own)
                self._known.add(whole)
        return own

    def _begin(self, whole: str, own: str) -> None:
        os.makedirs(own, exist_ok=True)
        if not self._is_removed(whole):
            self._copying.now = True
            try:
                _copy_newest_checkpoint(whole, own)
            finally:
                self._copying.now = False

    def to_read(self, path: str) -> str:
        """The dry run's path or pattern, if its file exists or was removed; else the user's."""
        own = self.to_write(path)
        is_there = glob.glob(own) if glob.has_magic(own) else os.path.lexists(own)
        return own if is_there or self._is_removed(_whole(path)) else path

    def to_write(self, path: str) -> str:
        """The dry run's path, for a path in a folder with a stand-in; else the path itself."""
        if not self._known or getattr(self._copying, "now", False):
            return path
        whole = _whole(path)
        if _is_below(whole, self._root):
            return path
        is_known = any(_is_below(whole, known) for known in list(self._known))
        return self._of(whole) if is_known else path

    def remove_tree(self, path: str) -> bool:
        """Removes a folder's stand-in; False for one below the root, which the caller removes."""
        whole = _whole(path)
        if _is_below(whole, self._root):
            return False
        with self._lock:
            self._known.add(whole)
            self._removed.add(whole)
        shutil.rmtree(self._of(whole), ignore_errors=True)
        return True

    def remove_file(self, path: str) -> bool:
        """Marks a file as removed if only the user's folder has it; else returns False."""
        if self.to_write(path) == path or os.path.lexists(self.to_write(path)):
            return False
        if self.to_read(path) == path and os.path.lexists(path):
            self._removed.add(_whole(path))
            return True
        return False

    def shown(self, path: str) -> str:
        """The user's name of a path, relative to the working directory if it is below that."""
        if _is_below(path, self._files):
            path = path.removeprefix(self._files)
        elif _is_below(path, self._root):
            return path.removeprefix(self._root).lstrip(os.sep)
        here = self._started_in.rstrip(os.sep) + os.sep
        return path.removeprefix(here)

    def temporary(self) -> str:
        path = os.path.join(self._root, "temporary")
        os.makedirs(path, exist_ok=True)
        return path

    def _is_removed(self, whole: str) -> bool:
        return any(_is_below(whole, removed) for removed in list(self._removed))

    def _of(self, whole: str) -> str:
        return os.path.join(self._files, whole.replace("://", os.sep).lstrip(os.sep))


def _whole(path: str) -> str:
    """The path from the root, without links, so that a folder has one name."""
    return os.path.realpath(path) if user_files.is_local(path) else path.rstrip("/")


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _copy_newest_checkpoint(folder: str, target: str) -> None:
    """Copies the files: with links, a save at the same step would overwrite the user's files."""
    path = latest(folder)
    if path is None:
        return
    for name in tf.io.gfile.glob(f"{user_files.literal(path)}.*"):
        tf.io.gfile.copy(name, os.path.join(target, os.path.basename(name)), overwrite=True)
    stem = os.path.join(target, os.path.basename(path))
    tf.compat.v1.train.update_checkpoint_state(target, stem)
