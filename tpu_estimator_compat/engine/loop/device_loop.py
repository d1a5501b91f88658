"""The inner loop: n steps on the devices in one call, without returning to Python in between."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training, in_pieces
from tpu_estimator_compat.engine.loop.single_step import SingleStep
from tpu_estimator_compat.engine.runtime import eager, functions
from tpu_estimator_compat.engine.runtime.traces import Contents, Handles
from tpu_estimator_compat.engine.runtime.tuner import Call, Tuner
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue

Step = Callable[[Any], list[tf.Tensor]]


class DeviceLoop:
    """Runs n steps in calls of a `tf.while_loop`; the tuner chooses the steps of each call.

    Variables on the host count the steps: at the end of the data, the loop raises an error and its
    own results are lost.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      stop_on_nan: end the loop after a step whose loss is NaN, as the original's NaN hook did.
      may_choose: see `Tuner`.
      branches: see `functions.call_options`.
      next_element: builds the op that takes the next element from the iterator.
      interrupted: asked about once per second whether to end the loop early.
      calls: the queue of the steps' host calls.
      counter: a scalar variable, whose value after the steps is in the result.
      notes_before: whether the result also has the counter's value before the last step, for hooks
        that have control around every step.
      contents: describes the operations of a step; loops with equal contents share a trace.
      whole: whether one call makes all requested steps. TensorFlow matches the exchanges of several
        machines by their place in a call.
      ops: number of operations in a step.
    """

    def __init__(
        self,
        step: Step,
        loss_dtype: tf.DType,
        *,
        stop_on_nan: bool,
        may_choose: bool,
        branches: bool = True,
        next_element: Callable[[Iterator], Any] = next,
        interrupted: Callable[[], bool] = lambda: False,
        calls: HostCallQueue | None = None,
        counter: tf.Variable | None = None,
        notes_before: bool = False,
        contents: Callable[[], Contents | None] = lambda: None,
        tuning: Tuning = DEFAULTS,
        whole: bool = False,
        ops: int = 0,
        replicas: int = 1,
    ):
        self.counter = counter
        self.notes_before = notes_before and counter is not None
        self._step = step
        self._stop_on_nan = stop_on_nan
        self._loss_dtype = loss_dtype
        self._next_element = next_element
        self._interrupted = interrupted
        self._calls = calls
        self._may_choose = may_choose
        self._clock = tuning.clock
        self._whole = whole
        self._new_tuner = functools.partial(Tuner, tuning, patience=tuning.patience(ops, replicas))
        self._tuner = self._new_tuner(may_choose)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
            self._loss = tf.Variable(tf.zeros([], loss_dtype), trainable=False, name="last_loss")
            self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="loss_sum")
            if counter is not None and notes_before:
                self._before = tf.Variable(0, dtype=counter.dtype, trainable=False, name="before")
        self._contents_of_step = contents
        self._function = functions.PerExecutor(
            lambda: functions.IteratorFunction(self._build, self._contents()),
            branches=branches,
        )
        self._single = SingleStep(step, next_element, counter, branches=branches, contents=contents)

    def _contents(self) -> Contents | None:
        step = self._contents_of_step()
        if step is None:
            return None
        own = {"done": self._done, "loss": self._loss, "sum": self._sum}
        if self.notes_before:
            own["before"] = self._before
        counter = None if self.counter is None else self.counter.name
        return step.within(
            ("loop", self._loss_dtype, self._stop_on_nan, counter, self.notes_before),
            Handles({name: variable.handle for name, variable in own.items()}),
        )

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def unfinished(i, loss):
            if not self._stop_on_nan:
                return i < steps
            return tf.logical_and(i < steps, tf.logical_not(ends_training(loss)))

        def body(i, loss):
            del loss
            data = self._next_element(iterator)
            if self.notes_before:
                self._before.assign(self.counter)
            loss = tf.reshape(self._step(data)[0], [])
            # After the element has arrived: at the end of the data no step may be counted.
            with tf.control_dependencies([loss, *tf.nest.flatten(data, expand_composites=True)]):
                self._done.assign(i + 1)
                self._loss.assign(loss)
                self._sum.assign_add(tf.cast(loss, tf.float64))
            return i + 1, loss

        self._done.assign(0)
        self._sum.assign(0.0)
        done, loss = tf.while_loop(
            unfinished, body, (tf.constant(0, tf.int64), tf.zeros([], self._loss_dtype))
        )
        noted = [] if self.counter is None else [self.counter.read_value()]
        noted += [self._before.read_value()] if self.notes_before else []
        return done, loss, self._sum.read_value(), *noted

    def __call__(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs up to `steps` steps; none where the data has ended. Host calls may end later."""
        return in_pieces(
            functools.partial(self._run_piece, iterator),
            steps,
            stop_on_nan=self._stop_on_nan,
            interrupted=self._interrupted,
        )

    def _run_piece(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs at most `steps` steps in one call, after which Python handles signals."""
        if self._calls is not None and self._calls.quick:
            self._take_calls_into_steps(self._calls)
        call = self._next_call(steps)
        if self._calls is not None:
            self._calls.make_room(call.steps)
        started = self._clock()
        result = self._run_and_call(iterator, call)
        self._tuner.record(call, result.steps, self._clock() - started)
        return result

    def _next_call(self, steps: int) -> Call:
        if self._whole:
            return Call(steps)
        if self._calls is None:
            return self._tuner.next(steps)
        # The queue needs room for the next steps' host calls while it makes the last steps' calls.
        steps = min(steps, self._calls.capacity // 2)
        return self._tuner.next(steps, waited_for=True, trial=self._calls.quick is False)

    def _take_calls_into_steps(self, calls: HostCallQueue) -> None:
        """Stops using the queue: the next step is traced anew, with its host call inside."""
        calls.leave()
        self._calls = None
        self._tuner = self._new_tuner(self._may_choose and calls.is_flat)
        self._function.clear()
        self._single.function.clear()

    def _run_and_call(self, iterator: Iterator, call: Call) -> LoopResult:
        """Runs a call, and has the queue's thread make the host calls of its steps."""
        if self._calls is None:
            return self._run(iterator, call)
        try:
            result = self._run(iterator, call)
        except BaseException:
            self._calls.hand_over()
            with contextlib.suppress(Exception):  # the first error counts
                self._calls.finish()
            raise
        self._calls.hand_over()
        if self._calls.failed:
            self._calls.finish()
        return result

    def _run(self, iterator: Iterator, call: Call) -> LoopResult:
        if not call.looped:
            return self._single(iterator, call.executor)
        try:
            steps = tf.constant(call.steps, tf.int64)
            done, loss, total, *noted = self._function(call.executor, iterator, steps)
        except StopIteration:  # before anything ran
            return LoopResult(0, self._loss.read_value(), 0.0, True)
        except tf.errors.OutOfRangeError:
            eager.forget_end_of_data()
            total = float(self._sum.read_value())
            return LoopResult(int(self._done), self._loss.read_value(), total, True)
        return LoopResult(int(done), loss, float(total), False, *noted)
