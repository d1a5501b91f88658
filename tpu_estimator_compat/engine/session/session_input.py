"""The input of a session: one iterator over it, and calls that wait for its elements."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TypeVar

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.checkpoint import input_state
from tpu_estimator_compat.engine.inputs import AsyncRelease, DeployedInput
from tpu_estimator_compat.engine.runtime.aside import Aside, StillBlockedError

Result = TypeVar("Result")


class SessionInput:
    """The iterator of a session, made when it is first asked for.

    Args:
      deployed_input: the input.
      interrupted: whether a signal asks to stop.

    Attributes:
      deployed_input: the same.
      exhausted: whether the data has ended.
      restored_from: the checkpoint whose position the iterator was moved to, until a step takes an
        element.
    """

    def __init__(self, deployed_input: DeployedInput, interrupted: Callable[[], bool]):
        self.deployed_input = deployed_input
        self.exhausted = False
        self.restored_from: str | None = None
        self._interrupted = interrupted
        self._iterator: Iterator | None = None
        self._aside = Aside(interrupted) if deployed_input.runs_python else None

    def iterator(self) -> Iterator:
        """The iterator that the steps take their input from."""
        if self._iterator is None:
            self._iterator = iter(self.deployed_input)
        return self._iterator

    def restore(self, path: str) -> bool:
        """Moves the iterator to where it stood at the checkpoint `path`, if that is known."""
        found = input_state.restore(self.iterator(), path)
        self.restored_from = path if found else None
        return found

    def take(self, call: Callable[[Iterator], Result]) -> Result:
        """Makes a call that takes elements; where Python makes them, they may never come.

        Raises:
          tf.errors.OutOfRangeError: it is given up, since training is to stop: as at the end of the
            data, the steps that are made are saved.
        """
        self.restored_from = None
        iterator = self.iterator()
        if self._aside is None:
            return call(iterator)
        try:
            return self._aside(lambda: call(iterator))
        except StillBlockedError as error:
            logging.warning("%s Training stops without it.", error)
            raise tf.errors.OutOfRangeError(None, None, str(error)) from None

    def close(self, close_steps: Callable[[], None]) -> None:
        """Frees the input: on purpose, not by whatever garbage collection comes along.

        The destructor of an iterator may take its time (see `AsyncRelease`).

        Args:
          close_steps: frees what takes elements; called before the iterator goes.
        """
        release = AsyncRelease(self._iterator) if self._iterator is not None else None
        self._iterator = None
        if self._aside is not None:
            self._aside.close()
        close_steps()
        # A signal ends the process, for which Python code that blocks the input would not.
        told = self._interrupted() or sys.exc_info()[0] is KeyboardInterrupt
        hurried = self._aside is not None and told
        if release:
            release.drop(hurried=hurried)
        self.deployed_input.close(hurried=hurried)
