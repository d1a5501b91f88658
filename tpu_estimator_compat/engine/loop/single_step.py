"""One step on the devices in a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.runtime import functions
from tpu_estimator_compat.engine.runtime.traces import Contents
from tpu_estimator_compat.engine.runtime.tuners import ExecutorChoice
from tpu_estimator_compat.engine.runtime.tuning import DEFAULT, Tuning


class SingleStep:
    """Runs one step in a call, for listeners that have control around every step.

    A loop of one step takes some times as long as a small step does: it has to be entered, and
    left.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      next_element: takes the next element from the iterator, where a step is built.
      counter: see `DeviceLoop`.
      branches: see `DeviceLoop`.
      contents: see `DeviceLoop`.
    """

    def __init__(
        self,
        step: Callable[[Any], list[tf.Tensor]],
        next_element: Callable[[Iterator], Any],
        counter: tf.Variable | None,
        *,
        branches: bool = True,
        contents: Callable[[], Contents | None] = lambda: None,
    ):
        self._step = step
        self._next_element = next_element
        self._counter = counter
        self._contents_of_step = contents
        self.function = functions.PerExecutor(
            lambda: functions.IteratorFunction(self._build, self._contents()),
            branches=branches,
        )

    def _contents(self) -> Contents | None:
        step = self._contents_of_step()
        counter = None if self._counter is None else self._counter.name
        return None if step is None else step.within(("single step", counter))

    def _build(self, iterator: Iterator) -> list[tf.Tensor]:
        data = self._next_element(iterator)
        before = [] if self._counter is None else [self._counter.read_value()]
        loss = tf.reshape(self._step(data)[0], [])
        return [loss, *([] if self._counter is None else [self._counter.read_value()]), *before]

    def __call__(self, iterator: Iterator, executor: str) -> LoopResult:
        """Makes one step, or none where the data has ended.

        Args:
          iterator: gives the step its element.
          executor: the executor of the step.
        """
        try:  # another host may tell of the end when the loss is asked for
            loss, *noted = self.function(executor, iterator)
            value = float(loss)
        except (StopIteration, tf.errors.OutOfRangeError):
            return LoopResult(0, tf.constant(np.nan), 0.0, True)
        return LoopResult(1, loss, value, False, *noted)


class FetchingStep:
    """Runs one step in a call and returns all its outputs, for listeners that fetch what is in it.

    Args:
      step: builds one step, of the iterator's next element, into the function under construction.
      tuning: the executor is chosen by its numbers.
      may_choose: whether the single-threaded executor can run the step.
      contents: the contents of a call.
    """

    def __init__(
        self,
        step: Callable[[Iterator], list[tf.Tensor]],
        tuning: Tuning,
        *,
        may_choose: bool,
        contents: Contents | None = None,
    ):
        self._tuning = tuning
        self._calls = 0
        self._choice = ExecutorChoice(tuning, may_choose, single=True)
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(step, contents))

    def __call__(self, iterator: Iterator) -> list[tf.Tensor]:
        """Makes one step.

        Args:
          iterator: gives the step its element.

        Raises:
          StopIteration, tf.errors.OutOfRangeError: the data has ended.
          tf.errors.OpError: what the step raised.
        """
        self._calls += 1
        if self._calls <= self._tuning.single_runs:  # a summary now and then is not worth a choice
            return self._function(DEFAULT, iterator)
        executor = self._choice.next(1)
        started = self._tuning.clock()
        outputs = self._function(executor, iterator)
        self._choice.record(executor, 1, self._tuning.clock() - started)
        return outputs
