"""TPUEstimator's log lines at the end of a mode, which tools and people search for."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import inspect
import os
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.estimator import tracebacks

Method = TypeVar("Method", bound=Callable[..., Any])

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


def marks(source: str, times: int = 1) -> Callable[[Method], Method]:
    """Decorates an estimator's method: shortens tracebacks; logs the end, if `_marks_finished`.

    A call logs the line with `source` `times` times; a call that fails logs it once.
    """

    def decorate(method: Method) -> Method:
        marked: Any

        if inspect.isgeneratorfunction(method):

            def results(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
                try:
                    with _marking(self, source, times):
                        yield from _in_its_process(method(self, *args, **kwargs))
                except BaseException as error:
                    tracebacks.shorten(error)
                    raise

            @functools.wraps(method)
            def marked(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
                found = results(self, *args, **kwargs)
                _OPEN.add(found)
                return found

        else:

            @functools.wraps(method)
            def marked(self: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    with _marking(self, source, times):
                        return method(self, *args, **kwargs)
                except BaseException as error:
                    tracebacks.shorten(error)
                    raise

        return marked

    return decorate


@contextlib.contextmanager
def _marking(estimator: Any, source: str, times: int) -> Iterator[None]:
    if not estimator._marks_finished:
        yield
        return
    try:
        yield
    except BaseException as error:
        logging.info("%s marked as finished", source)
        if isinstance(error, Exception) and not isinstance(error, _IGNORED):
            logging.warning("Reraising captured error")
        raise
    for _ in range(times):
        logging.info("%s marked as finished", source)
