"""Waits until all workers of a cluster are there, before TensorFlow or JAX joins them.

TensorFlow and JAX wait without a time limit, and TensorFlow holds the GIL, so that even Ctrl-C has
no effect. Where a worker of another cluster calls, or one is started again, all wait for ever. So
the chief first listens at the port that they will use. The messages, a line each:

    a worker: tpu_estimator_compat VERSION CLUSTER INDEX
    the chief, once all have called: go

CLUSTER is a hash of the workers' addresses, keyed with the secret. The chief answers any other
message with `refused` and the reason. A worker whose connection ends has gone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import hmac
import json
import re
import socket
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.cluster import addresses as cluster_addresses

_NAME = "tpu_estimator_compat"
_PAUSE = 0.1  # seconds between attempts to connect
_PATIENCE = 5.0  # seconds to wait for a caller's first line
_LONGEST_LINE = 512
# Seconds of silence before the first probe, seconds between probes, and lost probes allowed.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # Linux has them all
_MOST_REFUSALS = 10  # listed in an error's message


class MissingWorkersError(RuntimeError):
    """Raised where workers did not come in time; the message names them."""


class RefusedError(RuntimeError):
    """Raised for a process that is not a worker of this cluster; the message says why."""


def meet(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Waits until all workers of the cluster are present, at most `seconds`.

    `addresses` has host:port of each worker, the chief first, and of this process at `index`.

    Raises:
      MissingWorkersError: workers did not come in time.
      RefusedError: the chief has another cluster, version or secret.
      OSError: the chief's port is taken.
    """
    if index == 0:
        _run(_Chief(addresses).wait(seconds))
    else:
        _run(_call(addresses, index, seconds))


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine in a new thread: a notebook's main thread already runs an event loop."""
    interrupted = threading.Event()

    async def interruptible() -> None:
        task = asyncio.ensure_future(main)
        while not task.done():
            await asyncio.wait([task], timeout=_PAUSE)
            if interrupted.is_set():
                task.cancel()
        task.result()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(asyncio.run, interruptible())
        try:
            while not future.done():  # polls: another thread may get a signal
                concurrent.futures.wait([future], _PAUSE)
            future.result()
        finally:
            interrupted.set()


def hello(addresses: Sequence[str], index: int) -> list[str]:
    """The words of a worker's message."""
    secret, text = environment.cluster_secret(), json.dumps(list(addresses))
    cluster = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
    return [_NAME, environment.version(), cluster, str(index)]


class _Chief:
    """Listens until all other workers have called and are still there."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._hello = hello(addresses, 0)
        self._workers: dict[int, asyncio.StreamWriter] = {}
        self._refused: dict[str, str] = {}  # reasons by host
        self._came = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        host = cluster_addresses.to_listen(self._addresses)
        port = cluster_addresses.split(self._addresses[0])[1]
        try:
            async with asyncio.timeout(seconds):
                server = await asyncio.start_server(self._serve, host, port, limit=_LONGEST_LINE)
                try:
                    while len(self._workers) < len(self._addresses) - 1:
                        self._came.clear()
                        await self._came.wait()
                finally:
                    server.close()
        except TimeoutError:
            raise MissingWorkersError(self._missing()) from None
        for writer in self._workers.values():
            _say(writer, "go")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection, which may come from any program."""
        # An error ends this connection alone, and the end of the wait cancels it.
        errors = (OSError, ValueError, TimeoutError, asyncio.CancelledError)
        with contextlib.suppress(*errors), contextlib.closing(writer):
            words = await asyncio.wait_for(_heard(reader), _PATIENCE)
            try:
                index = self._admitted(words)
            except RefusedError as error:
                self._refuse(writer, str(error), is_worker=words[:1] == [_NAME])
                return
            self._end_earlier(index, writer)
            _keep_alive(writer)
            self._workers[index] = writer
            self._came.set()
            try:
                await reader.read(1)  # a worker says nothing more: this ends with the connection
            finally:
                if self._workers.get(index) is writer:
                    del self._workers[index]

    def _admitted(self, words: Sequence[str]) -> int:
        """The index of the worker whose message is `words`; raises RefusedError for others."""
        if len(words) != 4 or words[0] != _NAME:
            raise RefusedError("not a worker")
        _, version, cluster, _ = self._hello
        index = int(words[3]) if words[3].isdecimal() else 0
        # Other versions may have another protocol, and build other graphs.
        if words[1] != version:
            raise RefusedError(f"another version of {_NAME}; the chief has {version}")
        if not hmac.compare_digest(words[2], cluster):
            secret = environment.SECRET_VARIABLE
            raise RefusedError(f"another cluster in TF_CONFIG, or another {secret}")
        if not 0 < index < len(self._addresses):
            raise RefusedError("no task of this cluster")
        return index

    def _end_earlier(self, index: int, writer: asyncio.StreamWriter) -> None:
        """Refuses an earlier process of a worker that has been started again.

        If that process called again, the two would replace each other for ever.
        """
        if earlier := self._workers.get(index):
            why = f"a later process, at {_host(writer)}, has called as the same task"
            _say(earlier, "refused", why)
            earlier.close()

    def _refuse(self, writer: asyncio.StreamWriter, why: str, *, is_worker: bool) -> None:
        _say(writer, "refused", why)
        host = _host(writer)
        if is_worker and len(self._refused) < _MOST_REFUSALS:
            self._refused[host] = why
            logging.warning("Refused a worker at %s: %s.", host, why)

    def _missing(self) -> str:
        missing = [
            address
            for index, address in enumerate(self._addresses)
            if index and index not in self._workers
        ]
        refused = [f"Refused a worker at {host}: {why}." for host, why in self._refused.items()]
        return " ".join([f"No connection with {', '.join(missing)}.", *refused])


async def _call(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Calls the chief until it says `go`."""
    try:
        async with asyncio.timeout(seconds):
            while not await _is_told_to_go(addresses, index):
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise MissingWorkersError(f"No connection with {addresses[0]}.") from None


async def _is_told_to_go(addresses: Sequence[str], index: int) -> bool:
    """Whether the chief said `go`; False where it does not listen yet, or has gone."""
    chief = addresses[0]
    # Another program may still listen there.
    with contextlib.suppress(OSError, ValueError):
        host, port = cluster_addresses.split(chief)
        reader, writer = await asyncio.open_connection(host, port, limit=_LONGEST_LINE)
        with contextlib.closing(writer):
            _keep_alive(writer)
            _say(writer, *hello(addresses, index))
            words = await _heard(reader)
            if words[:1] == ["refused"]:
                raise RefusedError(f"{chief} refused this worker: {' '.join(words[1:])}.")
            return words == ["go"]
    return False


def _host(writer: asyncio.StreamWriter) -> str:
    return str((writer.get_extra_info("peername") or ["an unknown host"])[0])


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Turns on TCP keep-alive, so that the system notices a lost peer."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _say(writer: asyncio.StreamWriter, *words: str) -> None:
    writer.write(" ".join(words).encode() + b"\n")


async def _heard(reader: asyncio.StreamReader) -> list[str]:
    """The words of the peer's next line; empty at the end of the stream."""
    line = (await reader.readline()).decode("ascii", "replace")
    return re.sub(r"[^ -~]", " ", line).split()
