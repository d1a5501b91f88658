"""A time limit for calls that hold the GIL, which no Python code can interrupt."""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
from collections.abc import Iterator

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STDERR = 2  # a notebook's sys.stderr is no file


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Ends the process, with its stack on stderr and exit status 1, if the body takes longer.

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
