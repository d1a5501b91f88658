"""Ports for servers that tests start on this machine."""

import contextlib
import random
import socket

# Below the ports that systems give to outgoing connections, which come and go meanwhile.
_PORTS = range(20000, 30000)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, 100):
            listener = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind(("localhost", port))
                found.append(port)
            if len(found) == count:
                break
        return found
