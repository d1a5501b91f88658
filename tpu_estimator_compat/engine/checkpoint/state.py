"""Finds and reads the checkpoints of a model_dir, without a graph."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.tf_internals import OBJECT_GRAPH_PROTO_KEY, object_graph_key_mapping

Result = TypeVar("Result")

# Errors of missing, truncated or overwritten files. Other errors may be temporary, such as those of
# a file system: an older checkpoint must not replace a good one then.
UNREADABLE = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.InvalidArgumentError,
    tf.errors.FailedPreconditionError,
)
_OF_FILES = "_of_files"
_INDEX = re.compile(r"model\.ckpt-(\d+)\.index")


def damaged(error: tf.errors.OpError, message: str) -> tf.errors.DataLossError:
    """The error for files of a checkpoint that cannot be read: an older one may be."""
    made = tf.errors.DataLossError(error.node_def, error.op, message)
    setattr(made, _OF_FILES, True)
    return made


def named(
    model_dir: str | None, state_file: str | None = None, *, all_paths: bool = False
) -> list[str]:
    """Paths of the checkpoints that the file `checkpoint` names, the newest last.

    Scripts edit the file to go back to an older checkpoint: other files of the folder do not count,
    and newer ones in the file only with `all_paths`. Where the file is damaged, as after a power
    failure, the files of the folder count.
    """
    if not model_dir:
        return []
    try:
        state = tf.train.get_checkpoint_state(model_dir, state_file)
    except ValueError:  # the file is empty or not text
        state = None
    if state is not None:
        newest, paths = state.model_checkpoint_path, list(state.all_model_checkpoint_paths)
        if all_paths:
            return paths
        if newest not in paths and exists(newest):
            return [newest]
        return [*(paths[: paths.index(newest)] if newest in paths else paths), newest]
    file = os.path.join(model_dir, state_file or "checkpoint")
    if not tf.io.gfile.exists(file) and not user_files.is_link(file):
        return []
    names = [] if state_file else tf.io.gfile.listdir(model_dir)
    steps = sorted(int(found[1]) for name in names if (found := _INDEX.fullmatch(name)))
    logging.warning("%s cannot be read; found in the folder: steps %s.", file, steps)
    return [os.path.join(model_dir, f"model.ckpt-{step}") for step in steps]


def candidates(model_dir: str | None, state_file: str | None = None) -> list[str]:
    """Paths of checkpoints to restore from: the newest, then older ones."""
    paths = named(model_dir, state_file)
    while True:
        found = [path for path in reversed(paths) if exists(path)]
        if found[:1] == paths[-1:]:
            return found
        # Meanwhile another process may have saved a newer checkpoint and removed this one.
        if (again := named(model_dir, state_file)) == paths:
            return found
        paths = again


def exists(path: str) -> bool:
    """Whether a checkpoint's files exist, in either format."""
    pattern = user_files.literal(path)
    return bool(tf.io.gfile.glob(f"{pattern}.index") or tf.io.gfile.glob(pattern))


def warn_if_older(path: str | None, model_dir: str | None) -> None:
    """Warns if the newest checkpoint that `model_dir` names is missing, and `path` replaces it."""
    if (newest := next(reversed(named(model_dir)), None)) in (None, path) or exists(str(newest)):
        return
    logging.warning(
        "Checkpoint %s, the newest that `checkpoint` names, is not there. %s.",
        newest,
        f"Taking the older {path}" if path else "Nor is an older one",
    )


def latest(model_dir: str | None) -> str | None:
    """The path of the newest checkpoint in `model_dir` whose files exist; None without one."""
    return next(iter(candidates(model_dir)), None)


def global_step_in(model_dir: str | None, *, whole: bool = False) -> int:
    """The global step of the newest readable checkpoint in `model_dir`; 0 without one.

    With `whole`, all tensors of a local checkpoint must be readable, not only the step.
    """
    name = tf.compat.v1.GraphKeys.GLOBAL_STEP
    for path in candidates(model_dir):
        try:
            if whole and user_files.is_local(path) and not is_whole(path):
                continue
            return int(next((value for _, value in read_variables(path, [name])), 0))
        except (tf.errors.OpError, ValueError):  # the restore raises it again
            continue
    return 0


def is_whole(path: str) -> bool:
    """Whether all tensors of a checkpoint can be read; warns if not."""
    if (error := damage(path)) is not None:
        logging.warning("Checkpoint %s cannot be read: %s", path, error)
    return error is None


def damage(path: str) -> Exception | None:
    """The error of the first tensor that cannot be read; None for a whole checkpoint."""
    path = user_files.readable(path)
    try:
        for key, dtype in tf.train.load_checkpoint(path).get_variable_to_dtype_map().items():
            _tensor(path, key, dtype)
    except (tf.errors.OpError, ValueError) as error:
        return error
    return None


def read_newest(model_dir: str | None, read: Callable[[str], Result]) -> Result:
    """The result of `read`, called with the newest checkpoint's path; ValueError without one."""
    while True:
        if (path := latest(model_dir)) is None:
            raise _no_model(model_dir)
        warn_if_older(path, model_dir)
        try:
            return read(user_files.readable(path))
        except (tf.errors.OpError, ValueError, IndexError):
            if exists(path):  # else a training has removed it and saved a newer one
                raise


def read_newest_variable(model_dir: str | None, name: str) -> np.ndarray:
    """A variable of the newest checkpoint; NotFoundError where that lacks it."""

    def read(path: str) -> np.ndarray:
        try:
            return tf.train.load_variable(path, name)
        except tf.errors.NotFoundError as error:
            told = f"{error.message}, {path}. Give a name that get_variable_names() lists."
            raise tf.errors.NotFoundError(None, None, told) from None

    return read_newest(model_dir, read)


def read_variables(path: str, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields name and value of each variable in `names` that a checkpoint has.

    An object-based checkpoint has other keys, and a map from names to keys. Raises ValueError or
    OpError, where `get_tensor` of TF's reader raises IndexError for a truncated file.
    """
    path = user_files.readable(path)
    dtypes = tf.train.load_checkpoint(path).get_variable_to_dtype_map()
    try:
        keys = object_graph_key_mapping(path) if OBJECT_GRAPH_PROTO_KEY in dtypes else {}
    except IndexError as error:
        raise tf.errors.DataLossError(None, None, str(error)) from None
    for name in names:
        key = keys.get(name, name)
        if key not in dtypes:
            continue
        yield name, _tensor(path, key, dtypes[key]).numpy()


def _tensor(path: str, key: str, dtype: tf.DType) -> tf.Tensor:
    with eager.eager_mode(), tf.device("/cpu:0"):
        [value] = tf.raw_ops.RestoreV2(
            prefix=path, tensor_names=[key], shape_and_slices=[""], dtypes=[dtype]
        )
    return value


def read_all(path: str) -> Iterator[tuple[str, np.ndarray]]:
    """Yields key and value of each tensor of a checkpoint that has a NumPy form."""
    dtypes = tf.train.load_checkpoint(user_files.readable(path)).get_variable_to_dtype_map()
    yield from read_variables(path, sorted(n for n, d in dtypes.items() if d != tf.variant))


def check_available(model_dir: str | None) -> None:
    if not latest(model_dir):
        raise _no_model(model_dir)


def _no_model(model_dir: str | None) -> ValueError:
    return ValueError(f"Could not find trained model in model_dir: {model_dir}. Train first.")


def check_writable(model_dir: str) -> None:
    """Raises an OpError if `model_dir` cannot be a directory, or lacks permissions."""
    if not user_files.is_local(model_dir):
        return
    there = os.path.abspath(model_dir)  # resolves `..` as TensorFlow does
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    advice = f"Training cannot write to model_dir={model_dir!r}. Give a directory that it can make."
    if not os.path.isdir(there):
        raise tf.errors.FailedPreconditionError(None, None, f"{there} is not a directory. {advice}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise tf.errors.PermissionDeniedError(None, None, f"{there}: no permission. {advice}")


@dataclasses.dataclass(frozen=True)
class CheckpointSource:
    """The checkpoint at `path`, or the newest in `model_dir`, or else an older one there."""

    path: str | None
    model_dir: str | None

    def restore(self, restore: Callable[[str], None]) -> str | None:
        """Restores the newest readable checkpoint and returns its path; None without checkpoints.

        `restore` takes a path, and raises `damaged(...)` if it cannot be read, ValueError if it
        does not exist; any other error has nothing to do with the files. If no checkpoint can be
        read, the error is that of the newest one. Warns if it restores an older one.
        """
        unreadable: list[str] = []
        error: Exception | None = None
        while True:
            # Meanwhile another process may have saved and removed checkpoints.
            paths = [*([self.path] if self.path else []), *candidates(self.model_dir)]
            path = next((p for p in paths if p not in unreadable), None)
            if error is None:
                warn_if_older(path, self.model_dir)
            if path is None:
                break
            if error is not None:
                logging.warning("Falling back to checkpoint %s.", path)
            try:
                restore(path)
                return path
            except (tf.errors.DataLossError, ValueError) as failed:
                is_missing = isinstance(failed, ValueError) and not exists(path)
                if not (is_missing or hasattr(failed, _OF_FILES)):
                    raise
                logging.warning("Checkpoint %s cannot be read: %s", path, failed)
                error = error or failed
                unreadable.append(path)
        if error is not None:
            raise error
        return None
