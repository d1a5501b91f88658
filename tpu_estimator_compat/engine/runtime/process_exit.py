"""Ends the process without waiting for threads, where a call that never returns would block it."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import weakref

_SECONDS = 5.0  # for the script's atexit functions while the main thread is blocked


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
    """Makes the process end without waiting for TensorFlow's threads."""
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
