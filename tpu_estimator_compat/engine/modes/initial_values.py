"""Warns where a mode uses an untrained model."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode

_SHOWN = 3


def warn_if_untrained(captured: CapturedMode, scaffold: tf.compat.v1.train.Scaffold) -> None:
    """Warns where, without a checkpoint, trainable variables have their initializers' values.

    Initializers that read a file, as with `init_from_checkpoint` and warm starts, do not count. An
    `init_fn` may assign any values: with one there is no warning.
    """
    trainable = captured.graph.get_collection(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
    drawn = [v.op.name for v in trainable if not _is_read(v)]
    if not drawn or scaffold.init_fn is not None:
        return
    more = ", ..." if len(drawn) > _SHOWN else ""
    logging.warning(
        "There is no checkpoint in model_dir %s: %d of %d trainable variables have the values of "
        "their initializers, for mode %s (%s%s). Train first, or name a checkpoint_path.",
        captured.config.model_dir,
        len(drawn),
        len(trainable),
        captured.mode,
        ", ".join(drawn[:_SHOWN]),
        more,
    )


def _is_read(variable: tf.Variable) -> bool:  # from a file
    return any(
        op.type == "RestoreV2"
        for op in graph_ops.ancestors([graph_ops.as_operation(variable.initializer)], ())
    )
