"""Processes files one by one in a child process, within limits: no file can stop the others.

Parsers crash on deeply nested text, and take much time and memory for some texts. The child,
`python -m tpu_estimator_compat.tools.scan.each_file DESCRIPTOR LIMIT MODULE FUNCTION`, is started
anew after such a file.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from tpu_estimator_compat.tools import child_process
from tpu_estimator_compat.tools.scan.files import CannotRead

_MEMORY = 4 << 30
_STACK, _DEPTH = 512 << 20, 100_000
"""Bytes of the stack, and Python's recursion limit: a sum nests as deeply as it has terms."""

_GRACE = 15.0  # seconds beyond its limit for a child that waits in the kernel


class EachFile:
    """Calls `work(*given, file, ...)` in the child; arguments and results are pickled.

    Args:
      work: names of a module and of a function in it.
      limit: seconds for one file.
      given: the first arguments of each call.
    """

    def __init__(self, work: tuple[str, str], limit: float = 60.0, given: tuple[Any, ...] = ()):
        self._work = work
        self._given = given
        self._limit = limit
        self._child: tuple[subprocess.Popen[bytes], Connection] | None = None

    def __enter__(self) -> EachFile:
        return self

    def __exit__(self, *unused_error: object) -> None:
        self._end()

    def __call__(self, file: str, *others: Any) -> Any:
        """Returns the result for one file; CannotRead where there is none, with the reason."""
        self._child = self._child or self._start()
        connection = self._child[1]
        try:
            connection.send((file, *others))
            if not connection.poll(self._limit + _GRACE):
                raise EOFError
            result, why = connection.recv()
        except (EOFError, ConnectionError):
            raise CannotRead(self._said(self._end())) from None
        except BaseException:
            self._end()
            raise
        if why:
            raise CannotRead(why)
        return result

    def _start(self) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, its = multiprocessing.Pipe()
        with its:
            words = str(its.fileno()), str(self._limit), *self._work
            command = child_process.module_command(__name__, *words)
            process = child_process.start(command, os.devnull, descriptors=[its.fileno()])
        ours.send(self._given)
        return process, ours

    def _end(self) -> child_process.Ending | None:
        if self._child is None:
            return None
        (process, connection), self._child = self._child, None
        connection.close()  # a child that waits for work ends
        return child_process.wait(process, 1.0)

    def _said(self, ending: child_process.Ending | None) -> str:
        if ending is None or ending.code in (None, -signal.SIGALRM):
            return f"It took more than {self._limit:.0f} s."
        return f"The process that read it {ending}."


def _serve(connection: Connection, limit: float, work: Callable[..., Any]) -> None:
    given = connection.recv()
    gc.freeze()
    gc.disable()  # a syntax tree is a million objects, and garbage all at once
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, limit)  # its signal ends the process
        answer = _answer(work, (*given, *arguments))
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        connection.send(answer)
        gc.collect()


def _answer(work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str]:
    try:
        return work(*arguments), ""
    except CannotRead as error:
        return None, str(error)
    except RecursionError:
        return None, "It is nested too deeply."
    except MemoryError:  # Python's parser raises it for a full stack, too
        return None, f"It is nested too deeply, or takes more than {_MEMORY >> 30} GiB of memory."
    except Exception as error:  # libraries raise others on text that they do not expect
        return None, f"{type(error).__name__}: {error}"


def main(descriptor: str, limit: str, module: str, function: str) -> None:
    work = getattr(importlib.import_module(module), function)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    threading.stack_size(_STACK)
    sys.setrecursionlimit(_DEPTH)
    given = Connection(int(descriptor)), float(limit), work
    threading.Thread(target=_serve, args=given).start()


if __name__ == "__main__":
    main(*sys.argv[1:])
