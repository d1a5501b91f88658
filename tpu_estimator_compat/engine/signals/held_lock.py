"""Ends the process where code in C keeps Python's lock for 16 seconds after SIGTERM.

No handler and no thread in Python can run then, and another thread in C would be lost in forks. So
`faulthandler` writes a stack into a pipe, which sends SIGSTKFLT to the process, and the handler of
this signal is `alarm`: it takes the signal's number, 16, for its seconds. SIGALRM then ends the
process, unless a thread in Python has read the pipe meanwhile.
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import select
import signal
from typing import Any

_LIBC = ctypes.PyDLL(None)
_LIBC.signal.restype = ctypes.c_void_p
_writers: list[int] = []  # of the pipe, while a training answers SIGTERM
_came: list[bool] = []  # [True] after a signal


def set_handler(number: int, handler: Any) -> None:
    """As `signal.signal`, below the handler of `faulthandler`."""
    layered = bool(_writers) and number == signal.SIGTERM
    if layered:
        faulthandler.unregister(number)
    signal.signal(number, handler)
    if layered:
        faulthandler.register(number, _writers[0], all_threads=False, chain=True)


def open_pipe() -> list[int]:
    """The pipe, which a thread should read; empty where there is one, or can be none.

    It is empty without Linux's signals of pipes, and where SIGALRM or SIGSTKFLT is in use.
    """
    if _writers or not hasattr(signal, "SIGSTKFLT"):
        return []
    used = {signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGSTKFLT)}
    if used != {signal.SIG_DFL} or signal.getitimer(signal.ITIMER_REAL)[0]:
        return []
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_inheritable(writer, True)  # a pipe whose last writer closes sends the signal, too
    try:
        fcntl.fcntl(reader, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(reader, fcntl.F_SETSIG, signal.SIGSTKFLT)
        fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    except OSError:  # of a kernel that only looks like Linux
        os.close(reader)
        os.close(writer)
        return []
    _LIBC.signal(signal.SIGSTKFLT, _LIBC.alarm)
    _writers.append(writer)
    return [reader, writer]


def read(reader: int) -> None:
    if _writers:  # else the training has ended
        _came[:] = [True]  # before the pipe is empty: `close` looks at both
    os.read(reader, 1 << 16)


def take_back() -> None:
    """Takes the alarm back: the lock is free.

    A stack is written in many pieces, each of which sets the alarm, perhaps late: the last one
    after the pipe is empty. So this is called again and again once the pipe was read.
    """
    if _came and signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.alarm(0)


def close(reader: int) -> None:
    """Takes all back but the open pipe, also in the child of a fork."""
    faulthandler.unregister(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))  # may be another one's by now
    if fcntl.fcntl(reader, fcntl.F_GETOWN) == os.getpid():
        fcntl.fcntl(reader, fcntl.F_SETFL, 0)
    _LIBC.signal(signal.SIGSTKFLT, signal.SIG_IGN)  # what is on its way is dropped
    _LIBC.signal(signal.SIGSTKFLT, signal.SIG_DFL)
    if select.select([reader], [], [], 0)[0]:
        _came[:] = [True]
    take_back()
    _came.clear()
    _writers.clear()
