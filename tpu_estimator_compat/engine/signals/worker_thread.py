"""Runs blocking calls in a worker thread, so that the main thread still handles signals.

Python code in an input may block: a generator that waits for a message, a queue that nobody fills.
TensorFlow waits for it in C++, where Python handles no signals, and nothing can cancel the wait.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tpu_estimator_compat.engine.functions import cancelling
from tpu_estimator_compat.engine.signals import process_exit

Result = TypeVar("Result")

_PATIENCE = 3.0  # seconds that a call may go on once its caller should stop
_INTERVAL = 0.2  # seconds between two polls of `stopped`


class StillBlockedError(RuntimeError):
    """A call did not return although its caller should stop."""


class _Task(Generic[Result]):
    """A call for the thread, and its result.

    It costs a third of a `concurrent.futures.Future`: each prediction waits for a task.
    """

    def __init__(self, call: Callable[[], Result]):
        self._call: Callable[[], Result] | None = call
        self._canceller = cancelling.current()
        self._returned: list[Result] = []
        self._error: BaseException | None = None
        self._unfinished = threading.Lock()
        self._unfinished.acquire()

    def run(self) -> None:
        assert self._call is not None
        try:
            with cancelling.cancelled_by(self._canceller):
                self._returned.append(self._call())
        except BaseException as error:
            self._error = error
        self._call = None  # the caller may rely on holding the only reference
        self._unfinished.release()

    def wait(self, seconds: float) -> bool:
        """Waits some seconds, while signals are handled; returns whether the call has returned."""
        if not self._unfinished.acquire(timeout=seconds):
            return False
        self._unfinished.release()
        return True

    @property
    def will_be_cancelled(self) -> bool:
        """Whether a `SignalWatch` will cancel it: in a function that waits for no Python code."""
        waits = self._canceller is not None and self._canceller.since is not None
        return waits and not cancelling.runs_python()

    @property
    def is_done(self) -> bool:
        return not self._unfinished.locked()

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        return self._returned.pop()


class WorkerThread:
    """A thread that runs the main thread's calls; the first call starts it.

    `stopped` returns whether the caller should stop; it is polled while a call runs.
    """

    def __init__(self, stopped: Callable[[], bool]):
        self._stopped = stopped
        self._tasks: queue.SimpleQueue[_Task[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, call: Callable[[], Result]) -> Result:
        """Runs `call` in the thread; outside of the main thread, directly.

        Raises:
          StillBlockedError: the call did not return for some seconds after its caller should stop,
            and no `SignalWatch` will cancel it.
          KeyboardInterrupt: Ctrl-C; the call may still go on.
        """
        if threading.current_thread() is not threading.main_thread():
            return call()  # only the main thread handles signals
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_tasks, name="steps", daemon=True)
            self._thread.start()
        task = _Task(call)
        self._tasks.put(task)
        try:
            return self._result(task)
        except KeyboardInterrupt:
            if not self._stopped():  # otherwise `_result` has waited
                task.wait(_PATIENCE)
            raise
        finally:
            if not task.is_done:
                process_exit.end_without_waiting()

    def _result(self, task: _Task[Result]) -> Result:
        deadline = float("inf")
        while not task.wait(_INTERVAL):
            if self._stopped():
                deadline = min(deadline, time.monotonic() + _PATIENCE)
            if time.monotonic() > deadline and not task.will_be_cancelled:
                raise StillBlockedError(
                    f"The input has given no element for {_PATIENCE:.0f} seconds since the signal."
                )
        return task.result()

    def _run_tasks(self) -> None:
        while (task := self._tasks.get()) is not None:
            task.run()
            del task

    def close(self) -> None:
        self._tasks.put(None)
