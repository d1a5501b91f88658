"""Which behavior of TensorFlow a script starts with: graphs for TensorFlow 1, eager for 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python import tf2

from tpu_estimator_compat.legacy.dialect import Dialect


@contextlib.contextmanager
def of(meaning: Dialect) -> Iterator[None]:
    """The behavior that a script of this dialect was written for.

    Args:
      meaning: of its `tensorflow`.
    """
    before = tf2.enabled()
    _set(meaning is Dialect.V2)
    try:
        yield
    finally:
        _set(before)


def _set(second: bool) -> None:
    if tf2.enabled() == second:
        return
    tf.compat.v1.reset_default_graph()  # behavior changes only while there is none
    if second:
        tf.compat.v1.enable_v2_behavior()
    else:
        with _quiet():
            tf.compat.v1.disable_v2_behavior()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without TensorFlow's warning that resource variables should stay on: nobody asked here."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)
