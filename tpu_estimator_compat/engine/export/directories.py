"""Export directories: a complete export is renamed to the timestamp that servers look for."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.files import removal, user_files
from tpu_estimator_compat.tf_internals import (
    MAX_DIRECTORY_CREATION_ATTEMPTS,
    get_temp_export_dir,
    get_timestamped_export_dir,
)

_ASSETS_EXTRA = b"assets.extra"


class ExportDirectory:
    """A directory that is written under a temporary name.

    First `<base>/temp-<seconds>`, which servers ignore, then `<base>/<seconds>` (since 1970).
    """

    def __init__(self, temporary: bytes, final: bytes):
        self.temporary = temporary
        self.final = final


@contextlib.contextmanager
def new_export(base: str | bytes | os.PathLike[str]) -> Iterator[ExportDirectory]:
    """A new, empty temporary directory in `base`, which gets its final name on success.

    An exception removes it. A killed process leaves it under its temporary name. Raises
    RuntimeError where other exports took every timestamp for ten seconds.
    """
    base = os.fspath(base)
    advice = ". Give a directory that this process can make and write to."
    with _explained(f"Cannot export to export_dir_base={tf.compat.as_str(base)!r}", advice):
        tf.io.gfile.makedirs(base)
        directory = _claim(base)
    try:
        yield directory
        user_files.sync_tree(tf.compat.as_str(directory.temporary))
        tf.io.gfile.rename(directory.temporary, directory.final)
        user_files.sync([tf.compat.as_str(base)])
    except BaseException:
        with contextlib.suppress(tf.errors.OpError, OSError):
            removal.remove(tf.compat.as_str(directory.temporary), "temporary export")
        raise


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields a directory in which to export a SavedModel, which then replaces the one at `path`.

    Files of other names in `path` stay, as with Keras' own `export`.

    Raises FileExistsError where `path` is neither a SavedModel nor an empty directory.
    """
    path = path.rstrip("/") or path
    if tf.io.gfile.exists(path) and not (_is_saved_model(path) or _is_empty(path)):
        raise FileExistsError(
            f"Cannot export to {path!r}: something other than a SavedModel is there. Give another "
            "path, or remove it."
        )
    beside = f"{path}.unfinished-{user_files.token()}"
    try:
        yield beside
        [exported] = [n.rstrip("/") for n in tf.io.gfile.listdir(beside) if n[:1].isdigit()]
        user_files.replace_folder(os.path.join(beside, exported), path)
    finally:
        with contextlib.suppress(tf.errors.OpError, OSError):
            removal.remove(beside, "unfinished")


def _is_saved_model(path: str) -> bool:
    names = ("saved_model.pb", "saved_model.pbtxt")
    return any(tf.io.gfile.exists(os.path.join(path, name)) for name in names)


def _is_empty(path: str) -> bool:
    return tf.io.gfile.isdir(path) and not tf.io.gfile.listdir(path)


def _claim(base: str | bytes) -> ExportDirectory:
    for _ in range(MAX_DIRECTORY_CREATION_ATTEMPTS):
        final = get_timestamped_export_dir(base)
        temporary = get_temp_export_dir(final)
        if _made(temporary):
            return ExportDirectory(temporary, final)
        logging.warning("%s: another export uses this name; waiting", tf.compat.as_str(temporary))
        time.sleep(1)
    raise RuntimeError(
        "Failed to obtain a unique export directory name after "
        f"{MAX_DIRECTORY_CREATION_ATTEMPTS} attempts in {tf.compat.as_str(base)}."
    )


def _made(path: bytes) -> bool:
    """Makes a directory; False if it exists, made by another process in the same second."""
    if tf.io.gfile.exists(path):
        return False
    if user_files.is_local(tf.compat.as_str(path)):
        try:
            os.mkdir(path)  # gfile's does not fail for an existing directory
            return True
        except FileExistsError:
            return False
        except OSError:
            pass  # gfile raises the same errors for all file systems
    tf.io.gfile.mkdir(path)
    return True


@contextlib.contextmanager
def _explained(what: str, advice: str = "") -> Iterator[None]:
    try:
        yield
    except tf.errors.OpError as error:
        message = f"{what}: {error.message}{advice}"
        raise type(error)(error.node_def, error.op, message) from None


def copy_assets_extra(assets: Mapping[str, str] | None, directory: bytes) -> None:
    """Copies files into `assets.extra` of a SavedModel, by their paths there."""
    for relative, source in (assets or {}).items():
        target = os.path.join(directory, _ASSETS_EXTRA, tf.compat.as_bytes(relative))
        tf.io.gfile.makedirs(os.path.dirname(target))
        with _explained(f"assets_extra[{relative!r}] cannot be copied"):
            tf.io.gfile.copy(source, target)
