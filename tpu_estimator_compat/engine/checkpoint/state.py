"""Finds and reads the checkpoints of a model_dir, without a graph."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.runtime import eager
from tpu_estimator_compat.tf_internals import OBJECT_GRAPH_PROTO_KEY, object_graph_key_mapping


def candidates(model_dir: str | None) -> list[str]:
    """Paths of checkpoints to restore from: the newest, then older ones.

    Only those in the file `checkpoint` count, since scripts edit that to go back.
    """
    state = tf.train.get_checkpoint_state(model_dir) if model_dir else None
    if state is None or not state.model_checkpoint_path:
        return []
    newest, paths = state.model_checkpoint_path, list(state.all_model_checkpoint_paths)
    before = paths[: paths.index(newest)] if newest in paths else []
    return [p for p in [newest, *reversed(before)] if _exists(p)]


def _exists(path: str) -> bool:
    """Whether a checkpoint's files exist, in either format."""
    return bool(tf.io.gfile.glob(f"{path}.index") or tf.io.gfile.glob(path))


def latest(model_dir: str | None) -> str | None:
    """The path of the newest checkpoint in `model_dir` whose files exist; None without one."""
    return next(iter(candidates(model_dir)), None)


def global_step_in(model_dir: str | None) -> int:
    """The global step of the newest readable checkpoint in `model_dir`; 0 without one."""
    name = tf.compat.v1.GraphKeys.GLOBAL_STEP
    for path in candidates(model_dir):
        try:
            return int(next((value for _, value in read_variables(path, [name])), 0))
        except (tf.errors.OpError, ValueError):  # the restore raises it again
            continue
    return 0


def read_variables(path: str, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Names and values of those variables of `names` that a checkpoint has, one by one.

    An object-based checkpoint has other keys, and stores the variables' names. Errors are
    ValueErrors and OpErrors; `get_tensor` of TF's reader raises IndexError for a truncated file.
    """
    dtypes = tf.train.load_checkpoint(path).get_variable_to_dtype_map()
    keys = object_graph_key_mapping(path) if OBJECT_GRAPH_PROTO_KEY in dtypes else {}
    for name in names:
        key = keys.get(name, name)
        if key not in dtypes:
            continue
        with eager.eager_mode(), tf.device("/cpu:0"):
            [value] = tf.raw_ops.RestoreV2(
                prefix=path, tensor_names=[key], shape_and_slices=[""], dtypes=[dtypes[key]]
            )
        yield name, value.numpy()


def check_available(model_dir: str | None) -> None:
    if not latest(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")


def check_writable(model_dir: str) -> None:
    """Raises an OpError if `model_dir` cannot be a directory, or lacks permissions."""
    if "://" in model_dir:
        return
    there = os.path.abspath(model_dir)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    advice = f"Training cannot write to model_dir={model_dir!r}. Give a directory that it can make."
    if not os.path.isdir(there):
        raise tf.errors.FailedPreconditionError(None, None, f"{there} is not a directory. {advice}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise tf.errors.PermissionDeniedError(None, None, f"{there}: no permission. {advice}")


@dataclasses.dataclass(frozen=True)
class CheckpointSource:
    """The checkpoint at `path`, or the newest in `model_dir`, from which variables are restored.

    If that cannot be read, an older one in `model_dir` is.
    """

    path: str | None
    model_dir: str | None

    def restore(self, restore: Callable[[str], None]) -> str | None:
        """Restores the newest readable checkpoint and returns its path; None without checkpoints.

        `restore` takes a path, and raises DataLossError if it cannot be read, ValueError if it does
        not exist. If no checkpoint can be read, the error is that of the newest one.
        """
        unreadable: list[str] = []
        error: Exception | None = None
        while True:
            # Another process may have saved and removed checkpoints in the meantime.
            paths = [*([self.path] if self.path else []), *candidates(self.model_dir)]
            path = next((p for p in paths if p not in unreadable), None)
            if path is None:
                break
            if error is not None:
                logging.warning("Falling back to checkpoint %s.", path)
            try:
                restore(path)
                return path
            except (tf.errors.DataLossError, ValueError) as failed:
                if isinstance(failed, ValueError) and tf.compat.v1.train.checkpoint_exists(path):
                    raise
                logging.warning("Checkpoint %s cannot be read: %s", path, failed)
                error = error or failed
                unreadable.append(path)
        if error is not None:
            raise error
        return None
