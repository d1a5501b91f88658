"""Ends the process where a call never returns: at its end, from a thread, or after a time limit."""

from __future__ import annotations

import atexit
import contextlib
import dis
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SECONDS = 5.0  # for the script's atexit functions while the main thread is blocked
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDERR = 2  # a notebook's sys.stderr is no file


class _Exit:
    waits = True
    left: SystemExit | None = None  # which left the main module


def waits_no_more() -> bool:
    """Whether the process will end without waiting for threads that may never end."""
    return not _Exit.waits


def end_without_waiting() -> None:
    """Ends the process after its atexit functions, with the status that Python would give it.

    Python tells nobody the status of a SystemExit. So a trace function, as debuggers have one,
    sees how the main module ends.
    """
    if not _Exit.waits:
        return
    _Exit.waits = False
    if threading.current_thread() is not threading.main_thread():
        atexit.register(_exit)
        return
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    frame.f_trace, frame.f_trace_lines = _leave, False
    sys.settrace(lambda *unused: None)


def _leave(frame: FrameType, event: str, argument: Any) -> Any:
    """Traces the main module's frame."""
    if event == "exception":
        _Exit.left = argument[1] if isinstance(argument[1], SystemExit) else None
    if event == "return":
        if dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN"):
            _Exit.left = None  # the module has caught it
        atexit.register(_exit)  # now, so that it comes before all others, which it calls
    return _leave


def end_now(code: int) -> None:
    """Ends the process from a thread, while the main thread does not come back to Python.

    Runs the atexit functions first, for at most `_SECONDS`.
    """
    _Exit.waits = False
    timer = threading.Timer(_SECONDS, os._exit, [code])
    timer.daemon = True
    timer.start()
    _run_functions()
    os._exit(code)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends the process, with its stack on stderr and exit status 1, if the body takes longer.

    It is for calls that hold the GIL, which no Python code can interrupt.

    Within the context, signals with a handler in Python, such as Ctrl-C, end the process: their
    handlers could not run.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
    try:
        for number in handlers:
            signal.signal(number, signal.SIG_DFL)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        faulthandler.cancel_dump_traceback_later()


def _exit() -> None:
    """Runs the other atexit functions, and ends the process before Python's own end can block."""
    _run_functions()
    os._exit(_status())


def _run_functions() -> None:
    atexit.unregister(_exit)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # absent, closed or replaced
            stream.flush()


def _status() -> int:
    """The exit status that Python would give to the process."""
    uncaught = getattr(sys, "last_type", None)
    if _Exit.left is not None:
        code = _Exit.left.code
        return code & 0xFF if isinstance(code, int) else int(code is not None)
    if uncaught is not None:
        return 128 + signal.SIGINT if issubclass(uncaught, KeyboardInterrupt) else 1
    return 0
