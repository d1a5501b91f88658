"""Waits until all workers of a cluster are there, before TensorFlow or JAX joins them.

TensorFlow and JAX wait without a time limit, and TensorFlow holds the GIL, so that even Ctrl-C has
no effect. So the chief first listens at the port that they will use. The messages, a line each:

    a worker: tpu_estimator_compat VERSION CLUSTER INDEX TOKEN PROOF
    the chief, once all have called: ready? TOKEN PROOF
    a worker: ready PROOF
    the chief, once all have answered: go PROOF

The chief answers any other message with `refused` and the reason. Its question `ready?` finds the
workers that have gone since they called.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import re
import socket
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.topology import addresses as cluster_addresses
from tpu_estimator_compat.engine.topology.credentials import NAME, Credentials, RefusedError, token

_PAUSE = 0.1  # seconds between attempts to connect
_PATIENCE = 5.0  # seconds to wait for a worker's next line
_LONGEST_LINE = 512
# Seconds of silence before the first probe, seconds between probes, and lost probes allowed.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # Linux has them all
_MOST_REFUSALS = 10  # listed in an error's message


class MissingWorkersError(RuntimeError):
    """Raised where workers did not come in time; the message names them."""


def meet(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Waits until all workers of the cluster are present, at most `seconds`.

    `addresses` has host:port of each worker, the chief first, and of this process at `index`.

    Raises:
      MissingWorkersError: workers did not come in time.
      RefusedError: the chief has another cluster, version or secret.
      OSError: the chief's port is taken.
    """
    credentials = Credentials.of(addresses)
    if index == 0:
        _run(_Chief(addresses, credentials).wait(seconds))
    else:
        _run(_call(addresses[0], index, credentials, seconds))


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


class _Worker:
    """The chief's connection to a worker that has called."""

    def __init__(self, index: int, own: str, credentials: Credentials, writer: Any) -> None:
        self._words = (str(index), own)
        self._credentials = credentials
        self._writer = writer
        self._answered = asyncio.Event()
        self._question = ""

    async def is_ready(self) -> bool:
        self._answered.clear()
        self._question = token()
        self._say("ready?", self._question, self._proof("ready?"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._answered.wait(), _PATIENCE)
        return self._answered.is_set()

    def hear(self, words: Sequence[str]) -> None:
        """Handles a line that the worker sent after its first message."""
        answer = ("ready", *self._words, self._question)
        if words[0] == "ready" and self._credentials.is_proof(words[-1], *answer):
            self._answered.set()

    def go(self) -> None:
        self._say("go", self._proof("go"))

    def is_replaced_by(self, host: str) -> None:
        """Refuses this process: if it called again, the two would replace each other for ever."""
        self._say("refused", f"a later process, at {host}, has called as the same task")
        self.leave()

    def leave(self) -> None:
        self._writer.close()

    def _proof(self, what: str) -> str:
        return self._credentials.proof(what, *self._words, self._question)

    def _say(self, *words: str) -> None:
        _say(self._writer, *words)


class _Chief:
    """Listens until all other workers have called and are still there."""

    def __init__(self, addresses: Sequence[str], credentials: Credentials) -> None:
        self._addresses = addresses
        self._credentials = credentials
        self._workers: dict[int, _Worker] = {}
        self._refused: dict[str, str] = {}  # reasons by host
        self._came = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        host = cluster_addresses.to_listen(self._addresses)
        port = cluster_addresses.split(self._addresses[0])[1]
        try:
            async with asyncio.timeout(seconds):
                server = await asyncio.start_server(self._serve, host, port, limit=_LONGEST_LINE)
                try:
                    await self._all_are_ready()
                finally:
                    server.close()
        except TimeoutError:
            raise MissingWorkersError(self._missing()) from None
        for worker in self._workers.values():
            worker.go()

    async def _all_are_ready(self) -> None:
        while True:
            while len(self._workers) < len(self._addresses) - 1:
                self._came.clear()
                await self._came.wait()
            asked = dict(self._workers)
            ready = await asyncio.gather(*(worker.is_ready() for worker in asked.values()))
            for (index, worker), is_ready in zip(asked.items(), ready, strict=True):
                if not is_ready:
                    self._forget(index, worker)
            if asked == self._workers:
                return

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection, which may come from any program."""
        # An error ends this connection alone, and the end of the wait cancels it.
        errors = (OSError, ValueError, TimeoutError, asyncio.CancelledError)
        with contextlib.suppress(*errors), contextlib.closing(writer):
            words = await asyncio.wait_for(_heard(reader), _PATIENCE)
            try:
                index, own = self._credentials.admitted(words)
            except RefusedError as error:
                self._refuse(writer, str(error), is_worker=words[:1] == [NAME])
                return
            worker = _Worker(index, own, self._credentials, writer)
            # A restarted worker replaces its earlier process.
            if before := self._workers.get(index):
                before.is_replaced_by(_host(writer))
            self._workers[index] = worker
            self._came.set()
            try:
                while words := await _heard(reader):
                    worker.hear(words)
            finally:
                self._forget(index, worker)

    def _refuse(self, writer: asyncio.StreamWriter, why: str, *, is_worker: bool) -> None:
        _say(writer, "refused", why)
        host = _host(writer)
        if is_worker and len(self._refused) < _MOST_REFUSALS:
            self._refused[host] = why
            logging.warning("Refused a worker at %s: %s.", host, why)

    def _forget(self, index: int, worker: _Worker) -> None:
        if self._workers.get(index) is worker:
            del self._workers[index]
            worker.leave()

    def _missing(self) -> str:
        missing = [
            address
            for index, address in enumerate(self._addresses)
            if index and index not in self._workers
        ]
        refused = [f"Refused a worker at {host}: {why}." for host, why in self._refused.items()]
        return " ".join([f"No connection with {', '.join(missing)}.", *refused])


async def _call(chief: str, index: int, credentials: Credentials, seconds: float) -> None:
    """Calls the chief until it says `go`."""
    try:
        async with asyncio.timeout(seconds):
            while not await _is_told_to_go(chief, index, credentials):
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise MissingWorkersError(f"No connection with {chief}.") from None


async def _is_told_to_go(chief: str, index: int, credentials: Credentials) -> bool:
    """Whether the chief said `go`; False where it does not listen yet, or has gone."""
    own, question = token(), ""
    # Another program may still listen there.
    with contextlib.suppress(OSError, ValueError):
        host, port = cluster_addresses.split(chief)
        reader, writer = await asyncio.open_connection(host, port, limit=_LONGEST_LINE)
        with contextlib.closing(writer):
            _keep_alive(writer)
            _say(writer, *credentials.hello(index, own))
            while words := await _heard(reader):
                what, proof = words[0], words[-1]
                if what == "refused":
                    raise RefusedError(f"{chief} refused this worker: {' '.join(words[1:])}.")
                if what == "ready?" and len(words) == 3:
                    question = words[1]
                if what not in ("ready?", "go"):
                    return False
                if not credentials.is_proof(proof, what, str(index), own, question):
                    raise RefusedError(f"{chief} could not prove that it is the chief.")
                if what == "go":
                    return True
                _say(writer, "ready", credentials.proof("ready", str(index), own, question))
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
