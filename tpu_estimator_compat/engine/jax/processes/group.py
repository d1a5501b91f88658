"""The group of `cluster/group.py` between the processes of `jax.distributed`.

They meet in the key-value store of JAX's coordinator, in the chief's process. This takes no device,
so they can agree on a step while the previous step runs. Arrays travel from device to device.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils

from tpu_estimator_compat.engine.cluster.group import (
    Group,
    MachineLostError,
    State,
    check_none_failed,
)

Record = dict[str, Any]
"""A process's message to the others when they meet: its state, and other JSON values."""

_PATIENCE = 1000  # milliseconds between two times that signals are handled
_LONGEST_WAIT = 60  # seconds
_PAUSE = 0.05  # seconds between two polls of the store
_LARGEST_PIECE = 2**26  # bytes of a broadcast, which takes memory of devices
_BROKEN = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED", "Gloo", "NCCL", "Connection")


@dataclasses.dataclass
class Processes(Group):
    """The processes of `jax.distributed`.

    A server takes names of variables of which each process has parts, and assembles their values in
    all processes.
    """

    count: int
    index: int
    servers: list[Callable[[Sequence[str]], dict[str, np.ndarray]]] = dataclasses.field(
        default_factory=list
    )
    _turn: int = 0
    _has_met_failed: bool = False  # in the last exchange
    _calls: tuple[int, int] = (0, 0)  # a turn, and its number of calls

    def meet(self, state: State, place: str = "") -> np.ndarray:
        del place  # meetings are numbered
        return states_in(self.exchange({"state": state}))

    def exchange(self, record: Mapping[str, Any]) -> list[Record]:
        """The same as `meet`, for records of JSON values, which may include a state."""
        while True:
            records = self._all_say(record)
            asked = _asked_for(records)
            if not asked or State.FAILED in states_in(records):
                return records
            self.servers[-1](asked)

    def _all_say(self, record: Mapping[str, Any]) -> list[Record]:
        turn = self._turn
        with lost_if_broken():
            self.say(record)
            found = [json.loads(_get(self._key(turn, i))) for i in range(self.count)]
            if self.is_chief and turn:  # all have come here: all have read the previous turn
                _client().key_value_delete(f"{_PREFIX}/{turn - 1}")
        self._has_met_failed = State.FAILED in states_in(found)
        return found

    def say(self, record: Mapping[str, Any]) -> None:
        """Leaves `record` for the others' next `exchange`; does not wait for them."""
        _client().key_value_set(self._key(self._turn, self.index), json.dumps(record))
        self._turn += 1

    def numbers(self, number: int, name: str) -> np.ndarray:
        records = self.exchange({"name": name, "number": number})
        check_none_failed(states_in(records))
        if any(record.get("name") != name for record in records):
            raise AssertionError(f"The processes are at different places: {records}")
        return np.asarray([record["number"] for record in records], np.int64)

    def fail(self, place: str = "", *, owes_step: bool) -> None:
        """Tells the others in the next exchange that this process has failed.

        With an owed step, ends this process if they do not come within a minute: they would wait in
        the step as long as this process lives.
        """
        del place
        if self._has_met_failed:  # the others come to no further exchange either
            return
        turn = self._turn
        self.say({"state": State.FAILED})
        if owes_step:
            threading.Thread(target=self._end_unless_met, args=(turn,), daemon=True).start()

    def _end_unless_met(self, turn: int) -> None:
        missing = set(range(self.count)) - {self.index}
        deadline = time.monotonic() + _LONGEST_WAIT
        while missing and self._turn <= turn + 1:
            if time.monotonic() > deadline:
                logging.error(
                    "Process(es) %s wait for a step that this one, %d of %d, has failed to make: "
                    "it ends here, so that they end too.",
                    sorted(missing),
                    self.index,
                    self.count,
                )
                os._exit(1)
            time.sleep(1)
            client = distributed.global_state.client
            if client is None:  # JAX was shut down: the others have lost their connection
                return
            for index in list(missing):
                with contextlib.suppress(jax.errors.JaxRuntimeError):  # not there yet
                    client.key_value_try_get(self._key(turn, index))
                    missing.discard(index)

    def values_of(self, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Whole values of variables of which each process has parts; raises MachineLostError.

        The other processes serve in their next `exchange`.
        """
        records = self._all_say({"state": State.ASKING, "values of": list(names)})
        check_none_failed(states_in(records))
        return self.servers[-1](_asked_for(records))

    def gather(self, arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """The arrays of each process, of any number and shapes."""
        told = self.exchange({"arrays": [(a.shape, a.dtype.name) for a in arrays]})
        sent = b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
        described = [
            [(tuple(shape), np.dtype(name)) for shape, name in record["arrays"]] for record in told
        ]
        sizes = [sum(math.prod(shape) * t.itemsize for shape, t in one) for one in described]
        # Powers of 2, since each size compiles a program.
        most = 1 << max(10, (max(sizes) - 1).bit_length())
        padded = np.zeros([8 + most], np.uint8)
        padded[:8] = np.frombuffer(np.int64(self.index).tobytes(), np.uint8)
        padded[8 : 8 + len(sent)] = np.frombuffer(sent, np.uint8)
        with lost_if_broken():
            rows = np.asarray(multihost_utils.process_allgather(padded)).reshape(self.count, -1)
        by_process = {int(row[:8].view(np.int64)[0]): row[8:].tobytes() for row in rows}
        return [_arrays_in(by_process[i], described[i]) for i in range(self.count)]

    def from_chief(self, value: np.ndarray, name: str = "") -> np.ndarray:
        del name
        sent = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        pieces = [sent[i : i + _LARGEST_PIECE] for i in range(0, len(sent) or 1, _LARGEST_PIECE)]
        with lost_if_broken():
            found = [
                np.asarray(multihost_utils.broadcast_one_to_all(piece, is_source=self.is_chief))
                for piece in pieces
            ]
        return np.frombuffer(np.concatenate(found).tobytes(), value.dtype).reshape(value.shape)

    def together(self, call: str) -> bool:
        """Waits for the other processes; returns whether all make this call, so that they share it.

        False, in each process that makes the call, if a process makes another call, trains, has
        ended, or does not come within a minute.
        """
        made = self._calls[1] if self._calls[0] == self._turn else 0
        self._calls = self._turn, made + 1
        place = f"{_PREFIX}/calls/{self._turn}/{made + 1}"
        deadline = time.monotonic() + _LONGEST_WAIT
        with lost_if_broken():
            _client().key_value_set(f"{place}/{self.index}", call)
            while "decision" not in (found := _listed(place)):
                came = list(found.values())
                if self.is_chief and came == [call] * self.count:
                    _decide(place, _TOGETHER)
                elif any(other != call for other in came) or self._are_elsewhere():
                    _decide(place, _ALONE)
                elif time.monotonic() > deadline:
                    logging.getLogger("tensorflow").warning(
                        "Of %d processes %d came to %s together within %d s: each does it alone.",
                        *(self.count, len(came), call, _LONGEST_WAIT),
                    )
                    _decide(place, _ALONE)
                else:
                    time.sleep(_PAUSE)
        return found["decision"] == _TOGETHER

    def _are_elsewhere(self) -> bool:
        """Whether a process has come to the next exchange already, or has ended."""
        return bool(_listed(f"{_PREFIX}/{self._turn}") or _listed(f"{_PREFIX}/ended"))

    @staticmethod
    def _key(turn: int, index: int) -> str:
        return f"{_PREFIX}/{turn}/{index}"


_PREFIX = "tpu_estimator_compat"
_TOGETHER, _ALONE = "together", "alone"


@functools.cache
def processes() -> Processes | None:
    if jax.process_count() == 1:
        return None
    group = Processes(jax.process_count(), jax.process_index())
    atexit.register(_say_that_it_ends, group.index)
    return group


def _say_that_it_ends(index: int) -> None:
    with contextlib.suppress(jax.errors.JaxRuntimeError, RuntimeError):
        _client().key_value_set(f"{_PREFIX}/ended/{index}", "")


def states_in(records: Sequence[Record]) -> np.ndarray:
    """The states in records; READY where a record has none."""
    return np.asarray([record.get("state", State.READY) for record in records])


def _asked_for(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The variables for whose values a process asks; sorted, so that all have the same order."""
    return sorted({name for record in records for name in record.get("values of", ())})


def _listed(folder: str) -> dict[str, str]:
    """Values in a folder of the store, by their names within the folder."""
    pairs = _client().key_value_dir_get(f"{folder}/")
    return {key.removeprefix(f"{folder}/"): value for key, value in pairs}


def _decide(place: str, decision: str) -> None:
    """Notes a decision, unless another process has noted one."""
    with contextlib.suppress(jax.errors.JaxRuntimeError):  # the key exists
        _client().key_value_set(f"{place}/decision", decision)


def _arrays_in(
    data: bytes, described: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
) -> list[np.ndarray]:
    found, place = [], 0
    for shape, dtype in described:
        size = math.prod(shape)
        found.append(np.frombuffer(data, dtype, size, place).reshape(shape))
        place += size * dtype.itemsize
    return found


def _client() -> Any:
    client = distributed.global_state.client
    if client is None:
        raise RuntimeError(
            f"{jax.process_count()} processes have JAX devices, but jax.distributed is not "
            "initialized. Set TF_CONFIG, or call jax.distributed.initialize(...) before the "
            "estimator is made."
        )
    return client


def _get(key: str) -> str:
    while True:
        try:
            return _client().blocking_key_value_get(key, _PATIENCE)
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise


@contextlib.contextmanager
def lost_if_broken() -> Iterator[None]:
    """Turns errors of connections to other processes into MachineLostError."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not any(word in str(error) for word in _BROKEN):
            raise
        raise MachineLostError(
            "Another process of the cluster failed or cannot be reached; no step can be made "
            "without it. Start the script again on all of them: training goes on from the last "
            f"checkpoint. JAX says: {error}"
        ) from error
