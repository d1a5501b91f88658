"""Redirects what a script writes to the dry run's folders."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from typing import Any

import tensorflow as tf
from absl import flags

from tpu_estimator_compat.engine.checkpoint import saving
from tpu_estimator_compat.estimator import estimator, keras_models
from tpu_estimator_compat.estimator.exporting import Exporting
from tpu_estimator_compat.tf_internals import checkpoint_management, event_file_writer, file_io
from tpu_estimator_compat.tools.dry_run.folders import Folders
from tpu_estimator_compat.tools.dry_run.replacing import Function, replaced, wrapped


@contextlib.contextmanager
def redirected(folders: Folders, names: Collection[str]) -> Iterator[None]:
    """Within, model_dirs, exports and the folders that flags name are those of a dry run.

    Once a folder has been used, TensorFlow's file functions find it by the user's name, too.
    """
    with contextlib.ExitStack() as stack:
        for owner in (estimator, keras_models):
            stack.enter_context(wrapped(owner, "with_model_dir", _model_dirs(folders)))
        stack.enter_context(wrapped(Exporting, "_export", _exports(folders)))
        stack.enter_context(wrapped(estimator.Estimator, "_source_for", _sources(folders)))
        saver = tf.compat.v1.train.Saver
        for owner in (saver, saving):
            stack.enter_context(wrapped(owner, "save", _savers(folders.to_write)))
        stack.enter_context(
            wrapped(saver, "restore", _savers(lambda path: _of_checkpoint(folders, path)))
        )
        _redirect_flags(stack, folders, names)
        _redirect_files(stack, folders)
        stack.enter_context(replaced(tempfile, tempdir=folders.temporary()))
        yield


def _model_dirs(folders: Folders) -> Callable[[Function], Function]:
    def around(with_model_dir: Function) -> Function:
        def function(config: Any, model_dir: Any) -> Any:
            made = with_model_dir(config, model_dir)
            return made.replace(model_dir=folders.own(made.model_dir))

        return function

    return around


def _exports(folders: Folders) -> Callable[[Function], Function]:
    def around(export: Function) -> Function:
        signature = inspect.signature(export)

        def function(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            base, path = given.arguments["base"], given.arguments["checkpoint_path"]
            if isinstance(base, str | bytes | os.PathLike):
                given.arguments["base"] = folders.own(os.fsdecode(base))
            given.arguments["checkpoint_path"] = _of_checkpoint(folders, path)
            return export(*given.args, **given.kwargs)

        return function

    return around


def _sources(folders: Folders) -> Callable[[Function], Function]:
    def around(source_for: Function) -> Function:
        def function(self: Any, action: str, checkpoint_path: Any) -> Any:
            return source_for(self, action, _of_checkpoint(folders, checkpoint_path))

        return function

    return around


def _savers(own: Callable[[str], str]) -> Callable[[Function], Function]:
    """Gives a saver another path: its ops write files without TensorFlow's file functions."""

    def around(method: Function) -> Function:
        signature = inspect.signature(method)

        def function(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            path = given.arguments["save_path"]
            if path:
                given.arguments["save_path"] = own(os.fsdecode(path))
            return method(*given.args, **given.kwargs)

        return function

    return around


def _of_checkpoint(folders: Folders, path: Any) -> Any:
    """The dry run's path of a checkpoint, if it has the checkpoint; else the user's path."""
    if not isinstance(path, str | bytes | os.PathLike) or not path:
        return path
    own = folders.to_write(os.fsdecode(path))
    return own if os.path.exists(f"{own}.index") else path


def _redirect_flags(stack: contextlib.ExitStack, folders: Folders, names: Collection[str]) -> None:
    """Replaces values after parsing: the command line does not show defaults."""

    def absl_flags(parse: Function) -> Function:
        def function(self: Any, *args: Any, **kwargs: Any) -> Any:
            rest = parse(self, *args, **kwargs)
            for name in names:
                if name in self and _names_folder(self[name].value):
                    self[name].value = folders.own(self[name].value)
            return rest

        return function

    def arguments(parse: Function) -> Function:
        def function(*args: Any, **kwargs: Any) -> Any:
            parsed, rest = parse(*args, **kwargs)
            for name in (name.replace("-", "_") for name in names):
                value: Any = getattr(parsed, name, None)
                if _names_folder(value):
                    setattr(parsed, name, type(value)(folders.own(os.fspath(value))))
            return parsed, rest

        return function

    stack.enter_context(wrapped(flags.FlagValues, "__call__", absl_flags))
    stack.enter_context(wrapped(argparse.ArgumentParser, "parse_known_args", arguments))


def _names_folder(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(os.fspath(value))


def _redirect_files(stack: contextlib.ExitStack, folders: Folders) -> None:
    def rmtree(remove: Function) -> Function:
        def function(path: Any, *args: Any, **kwargs: Any) -> None:
            if not folders.remove_tree(os.fsdecode(path)):
                remove(path, *args, **kwargs)

        return function

    def state(get_checkpoint_state: Function) -> Function:
        def function(checkpoint_dir: Any, *args: Any, **kwargs: Any) -> Any:
            # The result has paths in the given folder; C++ code reads those files.
            own = folders.to_read(os.fsdecode(checkpoint_dir))
            return get_checkpoint_state(own, *args, **kwargs)

        return function

    stack.enter_context(wrapped(shutil, "rmtree", rmtree))
    for owner in (checkpoint_management, tf.train, tf.compat.v1.train):
        stack.enter_context(wrapped(owner, "get_checkpoint_state", state))
    for owner, name in ((file_io, "_pywrap_file_io"), (event_file_writer, "_pywrap_events_writer")):
        own = _OwnPaths(getattr(owner, name), folders)
        stack.enter_context(replaced(owner, **{name: own}))


class _OwnPaths:
    """A TensorFlow module's functions, called with the dry run's paths."""

    def __init__(self, module: Any, folders: Folders):
        self._module = module
        self._folders = folders

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._module, name)
        first = self._folders.to_read if name in _READING else self._folders.to_write

        def with_own_paths(path: Any, *args: Any) -> Any:
            if name in _REMOVING and _REMOVING[name](self._folders, os.fsdecode(path)):
                return None
            if name in _TO_TARGET:
                args = _own(args[0], self._folders.to_write), *args[1:]
            return function(_own(path, first), *args)

        return with_own_paths


_READING = {
    "BufferedInputStream",
    "CopyFile",
    "FileExists",
    "GetChildren",
    "GetMatchingFiles",
    "IsDirectory",
    "Stat",
}
_TO_TARGET = {"CopyFile", "RenameFile"}
_REMOVING = {"DeleteFile": Folders.remove_file, "DeleteRecursively": Folders.remove_tree}


def _own(value: Any, own: Callable[[str], str]) -> Any:
    path = own(os.fsdecode(value))
    return os.fsencode(path) if isinstance(value, bytes) else path
