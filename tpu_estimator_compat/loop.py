"""The inner loop: n steps on the devices in one call, without returning to Python in between."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.executors import ExecutorChoice
from tpu_estimator_compat.program import eager

Step = Callable[[Any], list[tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class LoopResult:
    """What n steps left behind.

    Attributes:
      steps: how many steps ran; fewer than asked for where the data ended or the loss was NaN.
      loss: the last step's loss, a scalar tensor.
      loss_sum: the sum of the steps' losses, float64.
      exhausted: whether the data ended.
    """

    steps: int
    loss: tf.Tensor
    loss_sum: tf.Tensor
    exhausted: bool


class DeviceLoop:
    """Runs a step n times in a `tf.while_loop`.

    Progress is kept in variables on the host, so that the steps made before the data ended are
    known although the loop's own results are lost with the error.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      loss_dtype: dtype of the loss.
      stop_on_nan: end the loop after a step whose loss is NaN, where the original's NaN hook, which
        looked at every step, stopped too.
      executors: chooses what runs the steps.
    """

    def __init__(
        self, step: Step, loss_dtype: tf.DType, *, stop_on_nan: bool, executors: ExecutorChoice
    ):
        self._step = step
        self._executors = executors
        self._stop_on_nan = stop_on_nan
        self._loss_dtype = loss_dtype
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
            self._loss = tf.Variable(tf.zeros([], loss_dtype), trainable=False, name="last_loss")
            self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="loss_sum")
        self._run = eager.function(self._build, reduce_retracing=True)

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def unfinished(i, loss, total):
            del total
            if not self._stop_on_nan:
                return i < steps
            return tf.logical_and(i < steps, tf.logical_not(tf.math.is_nan(loss)))

        def body(i, loss, total):
            del loss
            data = next(iterator)
            loss = tf.reshape(self._step(data)[0], [])
            total += tf.cast(loss, tf.float64)
            # Not before the element has arrived: at the end of the data nothing may be counted.
            with tf.control_dependencies([loss, *tf.nest.flatten(data, expand_composites=True)]):
                self._done.assign(i + 1)
                self._loss.assign(loss)
                self._sum.assign(total)
            return i + 1, loss, total

        start = (
            tf.constant(0, tf.int64),
            tf.zeros([], self._loss_dtype),
            tf.constant(0.0, tf.float64),
        )
        return tf.while_loop(unfinished, body, start)

    def __call__(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs up to `steps` steps.

        Args:
          iterator: gives one input element per step.
          steps: how many to run.

        Returns:
          What was run. Zero steps where the data had ended already.

        Raises:
          tf.errors.OpError: whatever a step raised, the end of the data excepted.
        """
        with eager.eager_mode():
            self._done.assign(0)
            self._sum.assign(0.0)
            executor = self._executors.next(steps)
            started = time.perf_counter()
            try:
                with eager.call_options(executor=executor):
                    done, loss, total = self._run(iterator, tf.constant(steps, tf.int64))
            except (tf.errors.OutOfRangeError, StopIteration):
                return LoopResult(
                    int(self._done), self._loss.read_value(), self._sum.read_value(), True
                )
            done = int(done)
            self._executors.record(executor, done, time.perf_counter() - started)
            return LoopResult(done, loss, total, False)
