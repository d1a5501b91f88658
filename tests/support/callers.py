"""Who calls the chief of a cluster, besides its workers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

from tpu_estimator_compat.engine.cluster import addresses as cluster_addresses
from tpu_estimator_compat.engine.cluster import rendezvous

LONG = 120.0  # seconds


def call(address: str) -> socket.socket:
    """A connection to the chief, once it listens."""
    deadline = time.monotonic() + LONG
    while True:
        try:
            return socket.create_connection(cluster_addresses.split(address), LONG)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


class Caller:
    """A worker that stops where a test wants it to."""

    def __init__(self, addresses: Sequence[str], index: int = 1):
        self.connection = call(addresses[0])
        self.lines = self.connection.makefile("rb")
        _, nonce = self.lines.readline().decode().split()
        self.said = " ".join(rendezvous.introduction(addresses, index, nonce)).encode() + b"\n"
        self.connection.sendall(self.said)
        assert self.hears() == ["present"]

    def hears(self) -> list[str]:
        """The words of the next line after its proof."""
        return self.lines.readline().decode().split()[1:]

    def dies(self) -> None:
        self.lines.close()
        self.connection.close()


def reset(connection: socket.socket) -> None:
    """Ends it as a port scanner does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
