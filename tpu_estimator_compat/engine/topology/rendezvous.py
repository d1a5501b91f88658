"""Waits until all workers of a cluster are there, before TensorFlow joins them.

TensorFlow's own wait has no end, and holds the GIL, so that even Ctrl-C has no effect. So the chief
first listens on the port that TensorFlow will use, until all others have connected.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable, Sequence

_HELLO = b"tpu_estimator_compat %d\n"
_GO = b"go\n"
_PAUSE = 0.1  # seconds between attempts to connect
_LONGEST_LINE = 64


class MissingWorkersError(RuntimeError):
    """Workers did not come in time; the message names them."""


def meet(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Returns when all workers are there.

    Args:
      addresses: host:port of each, the chief first.
      index: the number of this process.
    """
    deadline = time.monotonic() + seconds
    if index == 0:
        _listen(addresses, deadline)
    else:
        _call(addresses[0], index, deadline)


def _listen(addresses: Sequence[str], deadline: float) -> None:
    port = int(addresses[0].rpartition(":")[2])
    missing = dict(enumerate(addresses[1:], start=1))
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("", port)))
        connections = []
        while missing:
            listener.settimeout(_left(deadline, missing.values()))
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                stack.enter_context(connection)
                connection.settimeout(1.0)
                if (number := _number_of(_line(connection))) in missing:
                    del missing[number]
                    connections.append(connection)
        for connection in connections:
            connection.sendall(_GO)


def _call(chief: str, index: int, deadline: float) -> None:
    host, _, port = chief.rpartition(":")
    while True:
        with contextlib.suppress(OSError):  # the chief may not listen yet
            address = (host.strip("[]"), int(port))
            with socket.create_connection(address, _left(deadline, [chief])) as connection:
                connection.sendall(_HELLO % index)
                connection.settimeout(_left(deadline, [chief]))
                if _line(connection) == _GO:
                    return
        _left(deadline, [chief])
        time.sleep(_PAUSE)


def _left(deadline: float, missing: Iterable[str]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise MissingWorkersError(f"No sign of {', '.join(missing)}.")
    return left


def _line(connection: socket.socket) -> bytes:
    """One line from the other side, which may be any program."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
        byte = connection.recv(1)
        if not byte:
            break
        line += byte
    return line


def _number_of(line: bytes) -> int:
    name, _, number = line.strip().partition(b" ")
    return int(number) if _HELLO.startswith(name + b" ") and number.isdigit() else -1
