"""The processes that run steps on JAX's devices together, and what they tell each other.

They do so through the key-value store of JAX's coordinator, which is a part of the chief's process:
no device is asked, so they can agree on a step while the one before it runs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils

from tpu_estimator_compat.runtime.workers import MachineLostError

_PATIENCE = 1000  # milliseconds between two looks for signals
_LONGEST_WAIT = 60  # seconds
_BROKEN = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED", "Gloo", "NCCL", "Connection")


@dataclasses.dataclass
class JaxProcesses:
    """The processes of `jax.distributed`.

    Attributes:
      count: the number of members.
      index: which of them this process is; 0 is the chief.
    """

    count: int
    index: int
    _turn: int = 0

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints and events."""
        return self.index == 0

    def say(self, record: Mapping[str, Any]) -> None:
        """Leaves `record` for the others' next `exchange`, and does not wait for them."""
        _client().key_value_set(self._key(self._turn, self.index), json.dumps(record))
        self._turn += 1

    def fail(self, record: Mapping[str, Any], *, others_may_wait: bool) -> None:
        """As `say`, in a process that makes no further step.

        Args:
          record: the message to the other processes.
          others_may_wait: whether others may be in a step that this process has agreed to and does
            not make. They would wait for it as long as it lives: then it ends, unless they come to
            the next exchange within a minute.
        """
        turn = self._turn
        self.say(record)
        if others_may_wait:
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
            if client is None:  # it was shut down: the waiting process has lost its connection
                return
            for index in list(missing):
                with contextlib.suppress(jax.errors.JaxRuntimeError):  # not there yet
                    client.key_value_try_get(self._key(turn, index))
                    missing.discard(index)

    def exchange(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The records of all processes, once each of them has come here with its own.

        Args:
          record: a value for JSON.

        Raises:
          MachineLostError: a process is lost.
        """
        turn = self._turn
        with lost_if_broken():
            self.say(record)
            found = [json.loads(_get(self._key(turn, i))) for i in range(self.count)]
            if self.is_chief and turn:  # a process that comes here has read the values from before
                _client().key_value_delete(f"{_PREFIX}/{turn - 1}")
        return found

    def tell(self, number: int, name: str) -> int:
        """The chief's `number`, on every process; all call it with the same `name`."""
        records = self.exchange({"name": name, "number": int(number)})
        if any(record.get("name") != name for record in records):
            raise AssertionError(f"The processes are at different places: {records}")
        return int(records[0]["number"])

    def from_chief(self, value: np.ndarray) -> np.ndarray:
        """The chief's `value`, of the same shape and dtype everywhere, on every process."""
        sent = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        with lost_if_broken():
            found = multihost_utils.broadcast_one_to_all(sent, is_source=self.is_chief)
        return np.frombuffer(np.asarray(found).tobytes(), value.dtype).reshape(value.shape)

    @staticmethod
    def _key(turn: int, index: int) -> str:
        return f"{_PREFIX}/{turn}/{index}"


_PREFIX = "tpu_estimator_compat"


@functools.cache
def processes() -> JaxProcesses | None:
    """The processes; None for one alone."""
    if jax.process_count() == 1:
        return None
    return JaxProcesses(jax.process_count(), jax.process_index())


def _client() -> Any:
    client = distributed.global_state.client
    if client is None:
        raise RuntimeError(
            f"There are {jax.process_count()} processes with JAX's devices, and they have not been "
            "introduced to each other. Set TF_CONFIG, or call jax.distributed.initialize(...) "
            "before the estimator is made."
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
    """Within, errors of the connections to other processes become MachineLostError."""
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
