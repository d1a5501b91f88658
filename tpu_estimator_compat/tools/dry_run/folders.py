"""The folders of a dry run: each folder that the script writes to has one that stands for it."""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any

import tensorflow as tf
from absl import flags

from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.checkpoint import diagnosis, state
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
        self._lock = threading.Lock()

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
                os.makedirs(own, exist_ok=True)
                _copy_newest_checkpoint(whole, own)
                self._known.add(whole)
        return own

    def temporary(self) -> str:
        """A new folder, for an estimator without a model_dir."""
        return tempfile.mkdtemp(dir=self._root)

    def within(self, path: str) -> str:
        """The dry run's path, for a path in a folder with a stand-in; else the path itself."""
        whole = _whole(path)
        is_known = any(_is_below(whole, known) for known in list(self._known))
        return self._of(whole) if is_known else path

    def of_checkpoint(self, path: str) -> str:
        """The dry run's path of a checkpoint, if it has the checkpoint; else the user's path."""
        own = self._of(_whole(path))
        return own if state.exists(own) else path

    def shown(self, path: str) -> str:
        """The user's name of a path, relative to the working directory if it is below that."""
        if _is_below(path, self._files):
            path = path.removeprefix(self._files)
        elif _is_below(path, self._root):
            return path.removeprefix(self._root).lstrip(os.sep)
        here = self._started_in.rstrip(os.sep) + os.sep
        return path.removeprefix(here)

    def _of(self, whole: str) -> str:
        return os.path.join(self._files, whole.replace("://", os.sep).lstrip(os.sep))


def _whole(path: str) -> str:
    """The path from the root, without links, so that a folder has one name."""
    return os.path.realpath(path) if user_files.is_local(path) else path.rstrip("/")


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def _copy_newest_checkpoint(folder: str, target: str) -> None:
    """Copies the files: with links, a save at the same step would overwrite the user's files.

    Copies the checkpoint that training would restore, with the same warnings.
    """

    def copy(path: str) -> None:
        pattern = user_files.literal(path)
        with diagnosis.reading(path):
            collections.deque(state.read_all(path), maxlen=0)
            for name in (*tf.io.gfile.glob(f"{pattern}.*"), *tf.io.gfile.glob(pattern)):
                tf.io.gfile.copy(name, os.path.join(target, os.path.basename(name)), overwrite=True)

    if path := state.CheckpointSource(None, folder).restore(copy):
        stem = os.path.join(target, os.path.basename(path))
        tf.compat.v1.train.update_checkpoint_state(target, stem)


@contextlib.contextmanager
def replaced_in_flags(names: Collection[str], own: Callable[[str], str]) -> Iterator[None]:
    """Within, `own(folder)` replaces the folders that these flags name, also by their defaults."""

    def absl_flags(parse: Function, self: Any, *args: Any, **kwargs: Any) -> Any:
        rest = parse(self, *args, **kwargs)
        for name in names:
            if name in self and _names_folder(self[name].value):
                self[name].value = own(self[name].value)
        return rest

    def arguments(parse: Function, *args: Any, **kwargs: Any) -> Any:
        parsed, rest = parse(*args, **kwargs)
        for name in (name.replace("-", "_") for name in names):
            value: Any = getattr(parsed, name, None)
            if _names_folder(value):
                setattr(parsed, name, type(value)(own(os.fspath(value))))
        return parsed, rest

    with (
        patched(flags.FlagValues, "__call__", absl_flags),
        patched(argparse.ArgumentParser, "parse_known_args", arguments),
    ):
        yield


def _names_folder(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))
