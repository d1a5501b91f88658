"""What a model_dir's checkpoints say without a graph, and which of them to read."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from tensorflow.compat.v1 import logging


def candidates(model_dir: str | None) -> list[str]:
    """Paths of checkpoints to restore from: the newest, then those before it.

    What the file `checkpoint` names counts, not what else is there: scripts edit it to go back.
    """
    state = tf.train.get_checkpoint_state(model_dir) if model_dir else None
    if state is None or not state.model_checkpoint_path:
        return []
    newest, paths = state.model_checkpoint_path, list(state.all_model_checkpoint_paths)
    before = paths[: paths.index(newest)] if newest in paths else []
    return [p for p in [newest, *reversed(before)] if tf.compat.v1.train.checkpoint_exists(p)]


def latest(model_dir: str | None) -> str | None:
    """The path of the newest checkpoint in `model_dir` whose files are there, or None."""
    return next(iter(candidates(model_dir)), None)


def global_step_in(model_dir: str | None) -> int:
    """The global step of the newest readable checkpoint in `model_dir`; 0 where there is none."""
    name = tf.compat.v1.GraphKeys.GLOBAL_STEP
    for path in candidates(model_dir):
        try:
            reader = tf.train.load_checkpoint(path)
            return int(reader.get_tensor(name)) if reader.has_tensor(name) else 0
        except (tf.errors.OpError, ValueError):  # restoring it will say what is wrong
            continue
    return 0


def check_available(model_dir: str | None) -> None:
    """Raises ValueError where `model_dir` holds no checkpoint."""
    if not latest(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")


def restore_newest(
    restore: Callable[[str], None], first: str | None, model_dir: str | None
) -> str | None:
    """Restores the newest checkpoint that can be read, and warns of those that cannot.

    Args:
      restore: restores one path; raises DataLossError where it cannot be read, and ValueError where
        it is not there.
      first: the path to begin with; None for the newest in `model_dir`.
      model_dir: where to look for older ones; None to read `first` or nothing.

    Returns:
      What was restored; None where there is no checkpoint.

    Raises:
      tf.errors.DataLossError, ValueError: no checkpoint can be read; it tells of the newest.
    """
    unreadable: list[str] = []
    error: Exception | None = None
    while True:
        # Looked up anew: another process may have saved and removed some in the meantime.
        paths = [*([first] if first else []), *candidates(model_dir)]
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
