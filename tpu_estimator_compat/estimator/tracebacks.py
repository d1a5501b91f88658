"""Shortens the tracebacks of errors that users can act on, to frames of the user's code."""

from __future__ import annotations

import linecache
import types
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.cluster.group import MachineLostError
from tpu_estimator_compat.engine.graph.sources import is_users

_TOLD_IN_WORDS = (
    tf.errors.OpError,
    tf.compat.v1.train.NanLossDuringTrainingError,
    KeyboardInterrupt,
    MachineLostError,
)


def shorten(error: BaseException) -> None:
    """Drops the package's frames from the traceback of `error`, from the current frame inwards.

    An error without user frames comes from this package. Its traceback stays whole, unless the
    error is meant for users: a `raise` statement raised it, or it is of a type such as
    `tf.errors.OpError`. `tf.debugging.disable_traceback_filtering()` keeps all tracebacks whole.
    """
    if not tf.debugging.is_traceback_filtering_enabled():
        return
    frames: list[Any] = []
    entry = error.__traceback__
    while entry is not None:
        frames.append(entry)
        entry = entry.tb_next
    users = [each for each in frames if is_users(each.tb_frame.f_code.co_filename)]
    if not users and not isinstance(error, _TOLD_IN_WORDS) and not _is_raised(frames[-1]):
        return
    for each in reversed(users):
        entry = types.TracebackType(entry, each.tb_frame, each.tb_lasti, each.tb_lineno)
    error.__traceback__ = entry


def _is_raised(innermost: Any) -> bool:
    """Whether a `raise` statement raised the error; others, such as a KeyError, are bugs."""
    file = innermost.tb_frame.f_code.co_filename
    return linecache.getline(file, innermost.tb_lineno).strip().startswith("raise ")
