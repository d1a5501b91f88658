"""Cancels a TensorFlow function for which a thread waits, after a signal."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from threading import get_ident
from types import FrameType

import tensorflow as tf

from tpu_estimator_compat.tf_internals import cancellation, context, execute, script_ops

_here = threading.local()


class Canceller:
    """Cancels the function for which a thread waits.

    Attributes:
      since: time of the function's call, by `time.monotonic`; None between functions.
      thread: identifier of the thread that called it.
      is_lifted: whether the thread is within `cancelled_by(None)`.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self.thread = 0
        self.is_lifted = False
        self._cancelled = False
        self._manager = cancellation.CancellationManager()

    def cancel(self) -> None:
        """Makes the function, and all that are called later, raise CancelledError."""
        self._cancelled = True
        self._manager.start_cancel()

    def call(
        self, name: str, inputs: Sequence[tf.Tensor], outputs: int, options: Sequence[object]
    ) -> list[tf.Tensor]:
        runtime, self.since, self.thread = context.context(), time.monotonic(), get_ident()
        # A new manager for each call: TensorFlow cancels it where the function fails, such as at
        # the end of an input.
        self._manager = cancellation.CancellationManager()
        if self._cancelled:
            self._manager.start_cancel()
        try:
            return execute.execute_with_cancellation(
                name, outputs, inputs, options, runtime, self._manager
            )
        finally:
            self.since = None


def call(name: bytes, inputs: Sequence[tf.Tensor], outputs: int) -> list[tf.Tensor]:
    """Calls a function with `outputs` outputs, under this thread's canceller."""
    runtime, canceller = context.context(), current()
    if canceller is None:
        return runtime.call_function(name, inputs, outputs) or []
    options = itertools.chain(*runtime.function_call_options.as_attrs().items())
    return canceller.call(name.decode(), inputs, outputs, tuple(options))


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Within, this thread waits for another, which nothing cancels, as it does for a function."""
    canceller = current()
    if canceller is None:
        yield
        return
    canceller.since, canceller.thread = time.monotonic(), get_ident()
    try:
        yield
    finally:
        canceller.since = None


def current() -> Canceller | None:
    return getattr(_here, "canceller", None)


def runs_python() -> bool:
    """Whether, in some thread, TensorFlow waits for Python code, such as an input's generator."""
    return any(map(_is_called_by_tensorflow, sys._current_frames().values()))


def _is_called_by_tensorflow(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != script_ops.__file__:
        frame = frame.f_back
    return frame is not None


@contextlib.contextmanager
def cancelled_by(canceller: Canceller | None) -> Iterator[None]:
    """Lets `canceller` cancel the functions that this thread calls within.

    With None, nothing cancels them, for example while a checkpoint is written.
    """
    before = current()
    _here.canceller = canceller
    lifted = before if canceller is None else None
    if lifted:
        lifted.is_lifted = True
    try:
        yield
    finally:
        if lifted:
            lifted.is_lifted = False
        _here.canceller = before
