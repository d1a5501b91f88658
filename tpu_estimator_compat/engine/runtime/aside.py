"""Calls that may never return, made in a thread, so that who waits for them answers signals.

Python code in an input may block: a generator that waits for a message, a queue that nobody fills.
TensorFlow waits for it in C++, where Python hears no signal, and cannot be told to stop.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")

_PATIENCE = 3.0  # seconds that a call may go on for once its caller is to stop
_INTERVAL = 0.2  # seconds between two looks at whether the caller is to stop


class StillBlockedError(RuntimeError):
    """A call went on although its caller was to stop."""


class _Call(Generic[Result]):
    """A call, and what came of it.

    It takes a third of the time that a future of `concurrent.futures` takes, and predictions wait
    for one call each.
    """

    def __init__(self, call: Callable[[], Result]):
        self._call: Callable[[], Result] | None = call
        self._returned: list[Result] = []
        self._error: BaseException | None = None
        self._unfinished = threading.Lock()
        self._unfinished.acquire()

    def make(self) -> None:
        """Makes the call."""
        assert self._call is not None
        try:
            self._returned.append(self._call())
        except BaseException as error:
            self._error = error
        self._call = None  # who called may count on being the only one to have it
        self._unfinished.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is done, at once or within some seconds; signals are answered meanwhile."""
        if not self._unfinished.acquire(timeout=seconds):
            return False
        self._unfinished.release()
        return True

    @property
    def is_done(self) -> bool:
        """Whether the call has returned."""
        return not self._unfinished.locked()

    def result(self) -> Result:
        """The call's result; raises the call's error."""
        if self._error is not None:
            raise self._error
        return self._returned.pop()


class Aside:
    """A thread that makes the calls of another thread.

    Args:
      stopped: asked now and then whether the caller is to stop.
    """

    def __init__(self, stopped: Callable[[], bool]):
        self._stopped = stopped
        self._calls: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def __call__(self, call: Callable[[], Result]) -> Result:
        """The result of `call`.

        Raises:
          StillBlockedError: the caller is to stop, and the call did not return for some seconds.
          KeyboardInterrupt: Ctrl-C; the call may still go on.
          What the call raises.
        """
        if threading.current_thread() is not threading.main_thread():
            return call()  # no other thread hears signals
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="steps", daemon=True)
            self._thread.start()
        made = _Call(call)
        self._calls.put(made)
        try:
            return self._result(made)
        except KeyboardInterrupt:
            if not self._stopped():  # else it has been waited for
                made.wait(_PATIENCE)
            raise
        finally:
            if not made.is_done:
                end_without_waiting()

    def _result(self, made: _Call[Result]) -> Result:
        deadline = float("inf")
        while not made.wait(_INTERVAL):
            if self._stopped():
                deadline = min(deadline, time.monotonic() + _PATIENCE)
            if time.monotonic() > deadline:
                raise StillBlockedError(
                    f"The input has given no element for {_PATIENCE:.0f} seconds since the signal."
                )
        return made.result()

    def _work(self) -> None:
        while (made := self._calls.get()) is not None:
            made.make()
            del made

    def close(self) -> None:
        """Ends the thread after its call."""
        self._calls.put(None)


class _End:
    """The end of the process, where a call that never returns would keep it from ending."""

    registered = False
    code = 0


def set_exit_code(code: int) -> None:
    """Notes the status with which the process is about to end."""
    _End.code = code


def waits_no_more() -> bool:
    """Whether the process ends without waiting for threads that may never end."""
    return _End.registered


def end_without_waiting() -> None:
    """Has the process end at its end, and not wait for TensorFlow's threads there."""
    if not _End.registered:
        _End.registered = True
        atexit.register(_end)  # before TensorFlow's own: the last that is registered comes first


def _end() -> None:
    uncaught = getattr(sys, "last_type", None)
    if uncaught is not None:
        _End.code = 130 if issubclass(uncaught, KeyboardInterrupt) else 1
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(_End.code)
