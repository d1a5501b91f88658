"""What a model_dir's checkpoints say without a graph."""

from __future__ import annotations

import tensorflow as tf


def latest(model_dir: str | None) -> str | None:
    """The path of the newest checkpoint in `model_dir`, or None."""
    return tf.train.latest_checkpoint(model_dir)


def global_step_in(model_dir: str | None) -> int:
    """The global step of the newest checkpoint in `model_dir`; 0 where there is none."""
    path = latest(model_dir)
    if path is None:
        return 0
    reader = tf.train.load_checkpoint(path)
    name = tf.compat.v1.GraphKeys.GLOBAL_STEP
    return int(reader.get_tensor(name)) if reader.has_tensor(name) else 0


def check_available(model_dir: str | None) -> None:
    """Raises ValueError where `model_dir` holds no checkpoint."""
    if not latest(model_dir):
        raise ValueError(f"Could not find trained model in model_dir: {model_dir}.")
