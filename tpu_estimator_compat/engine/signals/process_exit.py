"""Ends the process where a call never returns: at its end, from a thread, or after a time limit."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import logging
import os
import signal
import sys
import threading
import weakref
from collections.abc import Iterator

_SECONDS = 5.0  # for the script's atexit functions while the main thread is blocked
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDERR = 2  # a notebook's sys.stderr is no file


class _Exit:
    waits = True
    code = 0


def set_exit_code(code: int) -> None:
    """Sets the exit status for an end without waiting; an uncaught exception's replaces it."""
    _Exit.code = code


def waits_no_more() -> bool:
    """Whether the process will end without waiting for threads that may never end."""
    return not _Exit.waits


def end_without_waiting() -> None:
    _Exit.waits = False


def end_now(code: int) -> None:
    """Ends the process from a thread, while the main thread does not come back to Python.

    Runs the atexit functions first, for at most `_SECONDS`.
    """
    set_exit_code(code)
    end_without_waiting()
    timer = threading.Timer(_SECONDS, os._exit, [code])
    timer.daemon = True
    timer.start()
    atexit._run_exitfuncs()
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


@atexit.register
def _exit() -> None:
    """Runs, as atexit reverses the order, after the script's functions and before TensorFlow's."""
    if _Exit.waits:
        return
    uncaught = getattr(sys, "last_type", None)
    if uncaught is not None:
        _Exit.code = 130 if issubclass(uncaught, KeyboardInterrupt) else 1
    weakref.finalize._exitfunc()  # type: ignore[attr-defined]  # removes temporary folders
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(_Exit.code)
