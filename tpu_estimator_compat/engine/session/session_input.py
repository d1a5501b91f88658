"""The iterator of a session, and interruptible calls that wait for its elements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import input_state
from tpu_estimator_compat.engine.inputs.async_release import AsyncRelease
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.signals.worker_thread import StillBlockedError, WorkerThread

Result = TypeVar("Result")


class SessionInput:
    """The iterator of a session, made on first use.

    Attributes:
      exhausted: whether no more steps can be made: the data ended, here or on another machine.
      restored_from: the checkpoint whose position the iterator has, until a step takes an element.
    """

    def __init__(self, deployed_input: DeployedInput, interrupted: Callable[[], bool]):
        self.deployed_input = deployed_input
        self.exhausted = False
        self.restored_from: str | None = None
        self._interrupted = interrupted
        self._iterator: Iterator | None = None
        self._worker = WorkerThread(interrupted) if deployed_input.runs_python else None

    def iterator(self) -> Iterator:
        if self._iterator is None:
            self._iterator = iter(self.deployed_input)
        return self._iterator

    def restore(self, path: str) -> str | None:
        """Moves the iterator to its position at the checkpoint `path`; returns why not."""
        reason = input_state.restore(self.iterator(), path)
        self.restored_from = None if reason else path
        return reason

    def take(self, call: Callable[[Iterator], Result]) -> Result:
        """Makes a call that takes elements; a signal interrupts it where Python makes the elements.

        It then raises OutOfRangeError, so that training ends and saves as at the end of data.
        """
        self.restored_from = None
        iterator = self.iterator()
        if self._worker is None:
            return call(iterator)
        try:
            return self._worker.run(lambda: call(iterator))
        except StillBlockedError as error:
            logging.warning("%s Training stops without it.", error)
            raise tf.errors.OutOfRangeError(None, None, str(error)) from None

    def close(self, close_steps: Callable[[], None]) -> None:
        """Frees the users of elements, then the input: now, not in a later garbage collection."""
        release = AsyncRelease(self._iterator) if self._iterator is not None else None
        self._iterator = None
        if self._worker is not None:
            self._worker.close()
        close_steps()
        # After a signal the process must end, even if Python code blocks the input.
        told = self._interrupted() or sys.exc_info()[0] is KeyboardInterrupt
        hurried = self._worker is not None and told
        if release:
            release.drop(hurried=hurried)
        self.deployed_input.close(hurried=hurried)
