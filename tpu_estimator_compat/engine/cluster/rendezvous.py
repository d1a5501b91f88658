"""Waits until all workers of a cluster are there, before TensorFlow or JAX joins them.

TensorFlow and JAX wait without a time limit, and TensorFlow holds the GIL, so that even Ctrl-C has
no effect. Where a worker of another cluster calls, or one is started again, all wait for ever. So
the chief first listens at the port that they will use. The messages, a line each:

    the chief: tpu_estimator_compat NONCE
    a worker: tpu_estimator_compat VERSION CLUSTER INDEX NONCE PROOF
    the chief, at once: PROOF present, or PROOF refused REASON
    the chief, once all have called: PROOF go

CLUSTER is a hash of the workers' addresses. A PROOF is a hash of the message, who says it and the
other side's nonce, keyed with the secret: a recorded one is worth nothing in another connection.
What comes without a proof does not count: neither side knows then whom it hears. A worker whose
connection ends has gone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import hmac
import json
import re
import secrets
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

from tensorflow.compat.v1 import logging

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.cluster import addresses as cluster_addresses

_NAME = "tpu_estimator_compat"
_PAUSE = 0.1  # seconds between attempts to connect
_PATIENCE = 5.0  # seconds to wait for the proof of another process
_LONGEST_LINE = 512
_MOST_REFUSALS = 10  # listed in an error's message
_DOUBT = (
    " What answered there does not prove that it is the chief: all workers need the same "
    f"{environment.SECRET_VARIABLE}."
)


class MissingWorkersError(RuntimeError):
    """Raised where workers did not come in time; the message names them."""


class RefusedError(RuntimeError):
    """Raised for a process that is not a worker of this cluster; the message says why."""


def meet(addresses: Sequence[str], index: int, seconds: float) -> None:
    """Waits until all workers of the cluster are present, at most `seconds`.

    `addresses` has host:port of each worker, the chief first, and of this process at `index`.

    Raises:
      MissingWorkersError: workers did not come in time.
      RefusedError: the chief has another cluster or version.
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


def introduction(addresses: Sequence[str], index: int, nonce: str) -> list[str]:
    """The words of a worker's message to the chief that said `nonce`."""
    cluster = hashlib.sha256(json.dumps(list(addresses)).encode()).hexdigest()
    words = [_NAME, environment.version(), cluster, str(index), secrets.token_hex()]
    return [*words, _proof("worker", nonce, words)]


def _proof(speaker: str, nonce: str, words: Sequence[str]) -> str:
    text = " ".join([speaker, nonce, *words])
    return hmac.new(environment.cluster_secret().encode(), text.encode(), "sha256").hexdigest()


class _Chief:
    """Listens until all other workers have called and are still there."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._version, self._cluster = introduction(addresses, 0, "")[1:3]
        self._workers: dict[int, tuple[asyncio.StreamWriter, str]] = {}  # with the nonces
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
        for writer, nonce in self._workers.values():
            _say_proved(writer, nonce, "go")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection, which may come from any program."""
        # An error ends this connection alone, and the end of the wait cancels it.
        errors = (OSError, ValueError, TimeoutError, asyncio.CancelledError)
        with contextlib.suppress(*errors), contextlib.closing(writer):
            nonce = secrets.token_hex()
            _say(writer, _NAME, nonce)
            words = await asyncio.wait_for(_heard(reader), _PATIENCE)
            if not self._is_proved(words, nonce):
                if words[:1] == [_NAME]:
                    _say(writer, "refused")
                    self._note_refusal(writer, f"another {environment.SECRET_VARIABLE}")
                return
            *_, version, cluster, index, peer_nonce, _ = words
            if why := self._reason_to_refuse(version, cluster):
                _say_proved(writer, peer_nonce, "refused", why)
                self._note_refusal(writer, why)
                return
            await self._wait_with(int(index), reader, writer, peer_nonce)

    def _is_proved(self, words: Sequence[str], nonce: str) -> bool:
        proof = _proof("worker", nonce, words[:-1])
        return len(words) == 6 and hmac.compare_digest(words[-1], proof)

    def _reason_to_refuse(self, version: str, cluster: str) -> str:
        """Why a worker that has the secret must not join; empty where it may."""
        # Other versions may have another protocol, and build other graphs.
        if version != self._version:
            return f"another version of {_NAME}; the chief has {self._version}"
        return "" if cluster == self._cluster else "another cluster in TF_CONFIG"

    async def _wait_with(
        self, index: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, nonce: str
    ) -> None:
        """Counts a worker as present until its connection ends.

        If it has been started again, its earlier process is refused: if that called again, the two
        would replace each other for ever.
        """
        if earlier := self._workers.get(index):
            why = f"a later process, at {_host(writer)}, has called as the same task"
            _say_proved(*earlier, "refused", why)
            earlier[0].close()
        _say_proved(writer, nonce, "present")
        self._workers[index] = writer, nonce
        self._came.set()
        try:
            await reader.read(1)  # a worker says nothing more: this ends with the connection
        finally:
            if self._workers.get(index) == (writer, nonce):
                del self._workers[index]

    def _note_refusal(self, writer: asyncio.StreamWriter, why: str) -> None:
        host = _host(writer)
        if self._refused.get(host) != why and len(self._refused) < _MOST_REFUSALS:
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
    missing = f"No connection with {addresses[0]}."
    try:
        async with asyncio.timeout(seconds):
            while (answer := await _answer(addresses, index)) != "go":
                if answer == "refused" and _DOUBT not in missing:
                    missing += _DOUBT
                    logging.warning(missing)
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise MissingWorkersError(missing) from None


async def _answer(addresses: Sequence[str], index: int) -> str:
    """The chief's `go`, `refused` of one without the secret, or an empty text."""
    chief = addresses[0]
    # Another program may still listen there, which says anything, or nothing.
    with contextlib.suppress(OSError, ValueError, TimeoutError):
        host, port = cluster_addresses.split(chief)
        reader, writer = await asyncio.open_connection(host, port, limit=_LONGEST_LINE)
        with contextlib.closing(writer):
            async with asyncio.timeout(_PATIENCE):
                _, nonce = await _heard(reader)
                own = introduction(addresses, index, nonce)
                _say(writer, *own)
                words = await _heard_from_chief(reader, own[-2])
            if words == ["present"]:
                words = await _heard_from_chief(reader, own[-2])
            if words[0] == "refused" and len(words) > 1:
                raise RefusedError(f"{chief} refused this worker: {' '.join(words[1:])}.")
            return words[0]
    return ""


def _host(writer: asyncio.StreamWriter) -> str:
    return str((writer.get_extra_info("peername") or ["an unknown host"])[0])


def _say(writer: asyncio.StreamWriter, *words: str) -> None:
    writer.write(" ".join(words).encode() + b"\n")


def _say_proved(writer: asyncio.StreamWriter, nonce: str, *words: str) -> None:
    _say(writer, _proof("chief", nonce, words), *words)


async def _heard_from_chief(reader: asyncio.StreamReader, nonce: str) -> list[str]:
    """The words of the next line; `refused` alone where its proof is not the chief's.

    Raises ValueError at the end of the stream.
    """
    proof, *words = await _heard(reader)
    return words if hmac.compare_digest(proof, _proof("chief", nonce, words)) else ["refused"]


async def _heard(reader: asyncio.StreamReader) -> list[str]:
    """The words of the peer's next line; empty at the end of the stream."""
    line = (await reader.readline()).decode("ascii", "replace")
    return re.sub(r"[^ -~]", " ", line).split()
