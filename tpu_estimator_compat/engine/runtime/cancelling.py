"""Cancels the functions of TensorFlow that a thread waits for, where they might never return."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence

import tensorflow as tf

from tpu_estimator_compat.tf_internals import cancellation, context, execute

_here = threading.local()


class Canceller:
    """Cancels the function that a thread waits for.

    Attributes:
      since: when that was called; None between functions.
    """

    def __init__(self) -> None:
        self.since: float | None = None
        self._cancelled = False
        self._manager = cancellation.CancellationManager()

    def cancel(self) -> None:
        """Has the function raise CancelledError, and all that are called later."""
        self._cancelled = True
        self._manager.start_cancel()

    def call(
        self, name: str, inputs: Sequence[tf.Tensor], outputs: int, options: Sequence[object]
    ) -> list[tf.Tensor]:
        runtime, self.since = context.context(), time.monotonic()
        # One for each call: TensorFlow cancels it where the function fails, such as at the end of
        # an input.
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
    """The outputs of a function of the runtime, given their number."""
    runtime, canceller = context.context(), getattr(_here, "canceller", None)
    if canceller is None:
        return runtime.call_function(name, inputs, outputs) or []
    options = itertools.chain(*runtime.function_call_options.as_attrs().items())
    return canceller.call(name.decode(), inputs, outputs, tuple(options))


@contextlib.contextmanager
def cancelled_by(canceller: Canceller | None) -> Iterator[None]:
    """Within, `canceller` may cancel the functions that this thread calls.

    With None they end by themselves, as writing a checkpoint should.
    """
    before = getattr(_here, "canceller", None)
    _here.canceller = canceller
    try:
        yield
    finally:
        _here.canceller = before
