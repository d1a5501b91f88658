"""One step on the devices in a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.loop.result import LoopResult
from tpu_estimator_compat.runtime import functions


class SingleStep:
    """Runs one step in a call, for listeners that have control around every step.

    A loop of one step takes some times as long as a small step does: it has to be entered, and
    left.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      next_element: takes the next element from the iterator, where a step is built.
      counter: see `DeviceLoop`.
    """

    def __init__(
        self,
        step: Callable[[Any], list[tf.Tensor]],
        next_element: Callable[[Iterator], Any],
        counter: tf.Variable | None,
    ):
        self._step = step
        self._next_element = next_element
        self._counter = counter
        self.function = functions.PerExecutor(lambda: functions.IteratorFunction(self._build))

    def _build(self, iterator: Iterator) -> list[tf.Tensor]:
        data = self._next_element(iterator)
        before = [] if self._counter is None else [self._counter.read_value()]
        loss = tf.reshape(self._step(data)[0], [])
        return [loss, *([] if self._counter is None else [self._counter.read_value()]), *before]

    def __call__(self, iterator: Iterator, executor: str) -> LoopResult:
        """Makes one step, or none where the data has ended.

        Args:
          iterator: gives the step its element.
          executor: what runs it.
        """
        try:
            loss, *noted = self.function(executor, iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            return LoopResult(0, tf.constant(np.nan), 0.0, True)
        return LoopResult(1, loss, float(loss), False, *noted)
