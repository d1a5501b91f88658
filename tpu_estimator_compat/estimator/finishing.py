"""The end of each call of an estimator: shorter tracebacks, and TPUEstimator's log lines.

Tools and people search for these lines.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import linecache
import os
import types
import weakref
from collections.abc import Generator, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.cluster.group import MachineLostError
from tpu_estimator_compat.engine.graph.sources import is_users
from tpu_estimator_compat.keras_model.calls import Call

_LINES = {
    "train": ("training_loop", 1),
    "evaluate": ("evaluation_loop", 1),
    "predict": ("prediction_loop", 2),
}
"""For each method the word of its lines, and how often a call logs the line."""

_IGNORED = (
    tf.errors.AbortedError,
    tf.errors.UnavailableError,
)  # sessions are recreated after these

_OPEN: weakref.WeakSet[Any] = weakref.WeakSet()
"""Generators of predictions that a script may leave open."""


@atexit.register
def _close_all() -> None:
    """Closes the generators that a script leaves open, before Python unloads its modules."""
    for results in list(_OPEN):
        with contextlib.suppress(ValueError):  # the generator runs in another thread
            results.close()


def _in_its_process(results: Generator[Any, None, None]) -> Iterator[Any]:
    """Yields results; a forked process does not close them, as it lacks the session's threads."""
    process = os.getpid()
    try:
        for result in results:  # noqa: UP028 (`yield from` would close them)
            yield result
    finally:
        if process == os.getpid():
            results.close()
        else:  # without one more reference, Python would close the generator at exit
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(results))


def finish(call: Call) -> Any:
    """Makes a call; shortens tracebacks; logs the end, if the estimator `_marks_finished`.

    A call that fails logs the line once.
    """
    if call.name == "predict":
        results = _results(call)
        _OPEN.add(results)
        return results
    call.at_error = shorten
    with _marking(call):
        return call.make()


def _results(call: Call) -> Iterator[Any]:
    try:
        with _marking(call):
            yield from _in_its_process(call.make())
    except BaseException as error:
        shorten(error)
        raise


@contextlib.contextmanager
def _marking(call: Call) -> Iterator[None]:
    if not call.owner._marks_finished:
        yield
        return
    source, times = _LINES[call.name]
    try:
        yield
    except BaseException as error:
        logging.info("%s marked as finished", source)
        if isinstance(error, Exception) and not isinstance(error, _IGNORED):
            logging.warning("Reraising captured error")
        raise
    for _ in range(times):
        logging.info("%s marked as finished", source)


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
