"""Shortens the tracebacks of errors that users can act on: they end in the user's code."""

from __future__ import annotations

import linecache
import types
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.engine.runtime.group import MachineLostError

_TOLD_IN_WORDS = (
    tf.errors.OpError,
    tf.compat.v1.train.NanLossDuringTrainingError,
    KeyboardInterrupt,
    MachineLostError,
)


def shorten(error: BaseException) -> None:
    """Keeps only the frames of user code in the traceback of `error`, from here on inwards.

    An error without such frames comes from this package. Its traceback stays whole, unless the
    package raised it for users. `tf.debugging.disable_traceback_filtering()` leaves all tracebacks
    whole.
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
    """Whether a `raise` statement raised the error: others, such as a KeyError, are accidents."""
    file = innermost.tb_frame.f_code.co_filename
    return linecache.getline(file, innermost.tb_lineno).strip().startswith("raise ")
