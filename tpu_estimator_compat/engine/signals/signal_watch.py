"""A thread that handles signals while the main thread is blocked in C, where no handler runs.

A step may block in TensorFlow: on a queue that nobody fills, or in Python code that it calls. The
original had no handler, and SIGTERM ended it there.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable

from tpu_estimator_compat.engine.functions import cancelling
from tpu_estimator_compat.engine.functions.cancelling import Canceller
from tpu_estimator_compat.engine.signals import held_lock, process_exit

_INTERVAL = 0.2  # seconds between two checks of the main thread
_BUSY = 0.2  # of a core: a process that uses less computes nothing
_UNWINDING = 2.0  # seconds that the main thread has to come back once its function is cancelled
_LATE = 0.5  # seconds, at most, from a signal's handler until this thread learns of the signal


_open: list[SignalWatch] = []


def _leave_to_parent() -> None:
    """In the child of a fork, which has no thread, closes its copies of the parent's watches."""
    while _open:
        watch = _open[-1]
        watch.close()
        watch.close_rest()
        signal.set_wakeup_fd(-1)


os.register_at_fork(after_in_child=_leave_to_parent)


class SignalWatch:
    """A thread that, after a signal, ends the call in which the main thread is blocked.

    The main thread is blocked while it is in one function, or has not run the signal's handler. A
    function that computes nothing for `patience` seconds is cancelled; if that does not help, the
    process ends.

    Args:
      is_ours: whether a signal has the handler that calls `answered`.
      is_urgent: whether the process should end at once; a second signal is urgent, too.
      patience: the seconds for which the main thread may be blocked and compute nothing.
      hurry: the seconds for which it may be blocked in urgent cases.

    Attributes:
      canceller: of the main thread's functions.
    """

    def __init__(
        self,
        is_ours: Callable[[int], bool],
        is_urgent: Callable[[], bool],
        patience: float,
        hurry: float,
    ) -> None:
        self.canceller = Canceller()
        self._is_ours, self._is_urgent = is_ours, is_urgent
        self._patience, self._hurry = patience, hurry
        # The main thread sets `_answered`; the watching thread sets the other attributes.
        self._answered = 0.0
        self._number: int | None = None  # the last signal
        self._count, self._came = 0, 0.0
        self._blocked: float | None = None
        self._idle = self._waited = 0.0
        self._cancelled: float | None = None
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._lock_pipe = held_lock.open_pipe()
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        _open.append(self)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    @property
    def has_cancelled(self) -> bool:
        return self._cancelled is not None

    def close(self) -> None:
        if self not in _open:  # a fork has closed its copy
            return
        _open.remove(self)
        signal.set_wakeup_fd(self._before)
        if self._lock_pipe:
            held_lock.close(self._lock_pipe[0])
        os.close(self._writer)  # the thread closes the rest

    def close_rest(self) -> None:
        for descriptor in (self._reader, *self._lock_pipe):
            os.close(descriptor)

    def answered(self) -> None:
        """Called by the handler of a signal, in the main thread."""
        self._answered = time.monotonic()

    def _watch(self) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        poll = select.poll()  # `select` cannot take the 1025th open file
        poll.register(self._reader, select.POLLIN)
        for descriptor in self._lock_pipe[:1]:
            poll.register(descriptor, select.POLLIN)
        while True:
            interval = None if self._number is None else 1000 * _INTERVAL
            readable = [descriptor for descriptor, _ in poll.poll(interval)]
            for descriptor in set(self._lock_pipe).intersection(readable):
                held_lock.read(descriptor)
            held_lock.take_back()
            if self._reader in readable:
                numbers = os.read(self._reader, 64)
                if not numbers:
                    self.close_rest()
                    return
                self._note(numbers)
            seconds, computed = time.monotonic() - wall, time.process_time() - cpu
            wall, cpu = wall + seconds, cpu + computed
            if interval is not None:
                self._look(seconds, busy=computed > _BUSY * seconds)

    def _note(self, numbers: bytes) -> None:
        if self._before != -1:  # set by an event loop, or by a training around this one
            with contextlib.suppress(OSError):
                os.write(self._before, numbers)
        for number in numbers:
            ours = self._is_ours(number)
            # At its end, a training within this one calls this one's handler.
            if ours or _open[-1:] != [self]:
                self._number, self._count = number, self._count + 1
            if ours:
                self._came = time.monotonic()

    def _is_left_to_others(self) -> bool:
        """Whether a checkpoint is written, or a `WorkerThread` waits for an input in Python."""
        in_main = self.canceller.thread == threading.main_thread().ident
        return self.canceller.is_lifted or (not in_main and cancelling.runs_python())

    def _look(self, seconds: float, *, busy: bool) -> None:
        """Checks the main thread, `seconds` after the last check; `busy`: the process computed."""
        urgent = self._count > 1 or self._is_urgent()
        blocked = self.canceller.since
        if blocked is None and self._came > self._answered + _LATE:
            blocked = self._came
        if self._is_left_to_others() and not urgent:
            blocked = None
        stays = blocked is not None and blocked == self._blocked
        self._blocked = blocked
        self._waited = self._waited + seconds if stays else 0.0
        self._idle = self._idle + seconds if stays and not busy else 0.0
        if self._cancelled is None:
            if self._idle >= self._patience or (urgent and self._waited >= self._hurry):
                self._cancelled = time.monotonic()
                self.canceller.cancel()
        elif stays and time.monotonic() > self._cancelled + _UNWINDING:
            process_exit.end_now(128 + (self._number or 0))
