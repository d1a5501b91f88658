"""Ends the process without waiting for threads, where a call that never returns would block it."""

from __future__ import annotations

import atexit
import logging
import os
import sys


class _Exit:
    registered = False
    code = 0


def set_exit_code(code: int) -> None:
    """Sets the status with which the process ends, if it ends without waiting."""
    _Exit.code = code


def waits_no_more() -> bool:
    """Whether the process will end without waiting for threads that may never end."""
    return _Exit.registered


def end_without_waiting() -> None:
    """Makes the process end without waiting for TensorFlow's threads."""
    if not _Exit.registered:
        _Exit.registered = True
        atexit.register(_exit)  # runs before TensorFlow's own: last registered, first run


def _exit() -> None:
    uncaught = getattr(sys, "last_type", None)
    if uncaught is not None:
        _Exit.code = 130 if issubclass(uncaught, KeyboardInterrupt) else 1
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(_Exit.code)
