"""One step on the devices per call, without a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.runtime import eager, functions
from tpu_estimator_compat.engine.runtime.traces import Contents
from tpu_estimator_compat.engine.runtime.tuner import Tuner
from tpu_estimator_compat.engine.runtime.tuning import Tuning


class SingleStep:
    """Runs one step in a call, for hooks that have control around every step.

    For a small step, a loop takes several times as long. Arguments are as in `DeviceLoop`.
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
        """Makes one step, or none where the data has ended."""
        try:  # a remote host may report the end only when the loss is read
            loss, *noted = self.function(executor, iterator)
            value = float(loss)
        except (StopIteration, tf.errors.OutOfRangeError):
            eager.forget_end_of_data()
            return LoopResult(0, tf.constant(np.nan), 0.0, True)
        return LoopResult(1, loss, value, False, *noted)


class FetchingStep:
    """Runs one step in a call and returns all outputs, for hooks that fetch tensors of a step."""

    def __init__(
        self,
        step: Callable[[Iterator], list[tf.Tensor]],
        tuning: Tuning,
        *,
        may_choose: bool,
        contents: Contents | None = None,
    ):
        self._clock = tuning.clock
        self._tuner = Tuner(tuning, may_choose, patience=math.inf)
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(step, contents))

    def __call__(self, iterator: Iterator) -> list[tf.Tensor]:
        """Makes one step; raises StopIteration or OutOfRangeError where the data has ended."""
        call = self._tuner.next(1)
        started = self._clock()
        outputs = self._function(call.executor, iterator)
        self._tuner.record(call, 1, self._clock() - started)
        return outputs
