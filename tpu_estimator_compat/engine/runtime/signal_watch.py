"""Sees signals while the main thread waits in C, where Python runs no handler.

A step may block in TensorFlow: on a queue that nobody fills, or in Python that it calls. The
original, which had no handler, died of SIGTERM there.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Container

from tpu_estimator_compat.engine.runtime import process_exit
from tpu_estimator_compat.engine.runtime.cancelling import Canceller

_INTERVAL = 0.2  # seconds between two looks at the main thread
_BUSY = 0.2  # of a core: less is no computation
_UNWINDING = 2.0  # seconds that the main thread has to come back once its function is cancelled
_LATE = 0.5  # seconds by which this thread may learn of a signal after its handler has run


_open: list[SignalWatch] = []


def _leave_to_parent() -> None:
    """Leaves the watches of a fork's parent alone: signals of the child are not the parent's."""
    if _open:
        signal.set_wakeup_fd(-1)
        _open.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


class SignalWatch:
    """A thread that ends what the main thread is blocked in after a signal.

    The main thread is blocked while it is in one function, or has not run the signal's handler. A
    function that computes nothing for long is cancelled; if that does not help, the process ends
    from here.

    Args:
      numbers: the signals.
      patience: the seconds for which the main thread may be blocked and compute nothing.

    Attributes:
      canceller: of the main thread's functions.
    """

    def __init__(self, numbers: Container[int], patience: Callable[[], float]):
        self.canceller = Canceller()
        self._numbers, self._patience = numbers, patience
        self._number: int | None = None  # the last signal
        self._came = self._answered = 0.0
        self._blocked: float | None = None
        self._idle = 0.0
        self._cancelled: float | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        _open.append(self)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    @property
    def has_cancelled(self) -> bool:
        return self._cancelled is not None

    def close(self) -> None:
        if self not in _open:  # of a fork's parent
            return
        _open.remove(self)
        signal.set_wakeup_fd(self._before)
        os.close(self._writer)

    def answered(self) -> None:
        """Called by the handler of a signal, in the main thread."""
        self._answered = time.monotonic()

    def _watch(self) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        while True:
            interval = None if self._number is None else _INTERVAL
            if select.select([self._reader], [], [], interval)[0]:
                numbers = os.read(self._reader, 64)
                if not numbers:
                    os.close(self._reader)
                    return
                self._note(numbers)
            seconds, computed = time.monotonic() - wall, time.process_time() - cpu
            wall, cpu = wall + seconds, cpu + computed
            if interval is not None:
                self._look(seconds, computed)

    def _note(self, numbers: bytes) -> None:
        if self._before != -1:  # as an event loop has set it
            os.write(self._before, numbers)
        for number in numbers:
            if number in self._numbers:
                self._number, self._came = number, time.monotonic()

    def _look(self, seconds: float, computed: float) -> None:
        """Looks at the main thread some seconds after it was looked at before."""
        blocked = self.canceller.since
        if blocked is None and self._came > self._answered + _LATE:
            blocked = self._came
        busy = computed > _BUSY * seconds
        stays = blocked is not None and blocked == self._blocked and not busy
        self._idle = self._idle + seconds if stays else 0.0
        self._blocked = blocked
        if self._cancelled is None and self._idle >= self._patience():
            self._cancelled = time.monotonic()
            self.canceller.cancel()
        elif stays and self._cancelled and time.monotonic() > self._cancelled + _UNWINDING:
            process_exit.end_now(128 + (self._number or 0))
