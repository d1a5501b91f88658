"""The inner loop: n steps on the devices in one call, without returning to Python in between."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager, functions, tuning
from tpu_estimator_compat.engine.functions.traces import Contents, Handles
from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue
from tpu_estimator_compat.engine.step.program import StepProgram


class Loop:
    """Runs n steps in calls, between which Python handles signals.

    The tuner chooses the steps of each call. A step whose loss is NaN ends a training, as the
    original's NaN hook did.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      interrupted: asked between calls, about once per second, whether to end the loop early.
    """

    def __init__(self, step: StepProgram, tuner: Tuner, interrupted: Callable[[], bool]):
        self._step, self._tuner = step, tuner
        self._interrupted = interrupted
        self._clock = tuning.NUMBERS.clock

    def __call__(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs up to `steps` steps; none where the data has ended. Host calls may end later."""
        with eager.eager_mode():
            made = self._judged(iterator, steps)
            while made.steps < steps and not (made.is_last or self._interrupted()):
                made = made.followed_by(self._judged(iterator, steps - made.steps))
            return made

    def _judged(self, iterator: Iterator, steps: int) -> LoopResult:
        result = self._run_piece(iterator, steps)
        # At the end of the data the loss may be NaN because no step was made.
        if self._step.trains and not result.exhausted and ends_training(result.loss):
            return dataclasses.replace(result, stopped_by_nan=True)
        return result

    def _run_piece(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs some of n steps: at least one, unless the data has ended."""
        call = self._next_call(steps)
        started = self._clock()
        result = self._run(iterator, call)
        self._tuner.record(call, result.steps, self._clock() - started)
        return result

    def _next_call(self, steps: int) -> Call:
        return self._tuner.next(steps)

    def _run(self, iterator: Iterator, call: Call) -> LoopResult:
        """Makes one call."""
        raise NotImplementedError

    def _unfinished(self, i: tf.Tensor, steps: tf.Tensor, loss: tf.Tensor) -> tf.Tensor:
        """Builds the condition of the `tf.while_loop` of steps."""
        if not self._step.trains:
            return i < steps
        return tf.logical_and(i < steps, tf.logical_not(ends_training(loss)))


class DeviceLoop(Loop):
    """Runs n steps in calls of a `tf.while_loop`, or of a single step.

    For a small step, a loop takes several times as long as the step in a call of its own. Variables
    on the host count the steps of a loop: at the end of the data, it raises an error and its own
    results are lost.

    Args:
      next_element: builds the op that takes the next element from the iterator.
      notes_before: whether the result also has the global step before the last step, for hooks that
        have control around every step.
      whole: whether one call makes all requested steps. TensorFlow matches the exchanges of several
        machines by their place in a call.
    """

    def __init__(
        self,
        step: StepProgram,
        *,
        next_element: Callable[[Iterator], Any] = next,
        interrupted: Callable[[], bool] = lambda: False,
        notes_before: bool = False,
        whole: bool = False,
    ):
        self._patience = tuning.NUMBERS.patience(step.size, step.replicas)
        super().__init__(step, Tuner(step.may_run_on_one_thread, self._patience), interrupted)
        self.counter = step.counter
        self.notes_before = notes_before and self.counter is not None
        self._next_element = next_element
        self._calls = step.queue
        self._whole = whole
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
            self._loss = tf.Variable(
                tf.zeros([], step.loss_dtype), trainable=False, name="last_loss"
            )
            self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="loss_sum")
            if self.counter is not None and notes_before:
                dtype = self.counter.dtype
                self._before = tf.Variable(0, dtype=dtype, trainable=False, name="before")
        self._loop = self._per_executor(self._build, self._contents)
        self._single = self._per_executor(self._build_one, self._contents_of_one)

    def _per_executor(
        self, build: Callable[..., Any], contents: Callable[[], Contents | None]
    ) -> functions.PerExecutor:
        return functions.PerExecutor(
            lambda: functions.IteratorFunction(build, contents()), branches=self._step.has_branches
        )

    @property
    def _name_of_counter(self) -> str | None:
        return None if self.counter is None else self.counter.name

    def _contents(self) -> Contents | None:
        step = self._step.contents()
        if step is None:
            return None
        own = {"done": self._done, "loss": self._loss, "sum": self._sum}
        if self.notes_before:
            own["before"] = self._before
        of_step = self._step.loss_dtype, self._step.trains
        return step.within(
            ("loop", *of_step, self._name_of_counter, self.notes_before),
            Handles({name: variable.handle for name, variable in own.items()}),
        )

    def _contents_of_one(self) -> Contents | None:
        step = self._step.contents()
        return None if step is None else step.within(("single step", self._name_of_counter))

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
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
            lambda i, loss: self._unfinished(i, steps, loss),
            body,
            (tf.constant(0, tf.int64), tf.zeros([], self._step.loss_dtype)),
        )
        noted = [] if self.counter is None else [self.counter.read_value()]
        noted += [self._before.read_value()] if self.notes_before else []
        return done, loss, self._sum.read_value(), *noted

    def _build_one(self, iterator: Iterator) -> list[tf.Tensor]:
        data = self._next_element(iterator)
        before = [] if self.counter is None else [self.counter.read_value()]
        loss = tf.reshape(self._step(data)[0], [])
        return [loss, *([] if self.counter is None else [self.counter.read_value()]), *before]

    def _run_piece(self, iterator: Iterator, steps: int) -> LoopResult:
        if self._calls is not None and self._calls.quick:
            self._take_calls_into_steps(self._calls)
        return super()._run_piece(iterator, steps)

    def _next_call(self, steps: int) -> Call:
        if self._whole:
            return Call(steps)
        if self._calls is None:
            return self._tuner.next(steps)
        # The queue needs room for the next steps' host calls while it makes the last steps' calls.
        steps = min(steps, self._calls.capacity // 2)
        call = self._tuner.next(steps, waited_for=True, trial=self._calls.quick is False)
        self._calls.make_room(call.steps)
        return call

    def _take_calls_into_steps(self, calls: HostCallQueue) -> None:
        """Stops using the queue: the next step is traced anew, with its host call inside."""
        calls.leave()
        self._calls = None
        self._tuner = Tuner(self._step.may_run_on_one_thread and calls.is_flat, self._patience)
        self._loop.clear()
        self._single.clear()

    def _run(self, iterator: Iterator, call: Call) -> LoopResult:
        """Runs a call, and has the queue's thread make the host calls of its steps."""
        run = self._run_loop if call.looped else self._run_one
        if self._calls is None:
            return run(iterator, call)
        try:
            result = run(iterator, call)
        except BaseException:
            self._calls.hand_over()
            with contextlib.suppress(Exception):  # the first error counts
                self._calls.finish()
            raise
        self._calls.hand_over()
        if self._calls.failed:
            self._calls.finish()
        return result

    def _run_loop(self, iterator: Iterator, call: Call) -> LoopResult:
        try:
            steps = tf.constant(call.steps, tf.int64)
            done, loss, total, *noted = self._loop(call.executor, iterator, steps)
        except StopIteration:  # before anything ran
            return LoopResult(0, self._loss.read_value(), 0.0, True)
        except tf.errors.OutOfRangeError:
            eager.forget_end_of_data()
            total = float(self._sum.read_value())
            return LoopResult(int(self._done), self._loss.read_value(), total, True)
        return LoopResult(int(done), loss, float(total), False, *noted)

    def _run_one(self, iterator: Iterator, call: Call) -> LoopResult:
        try:  # a remote host may report the end only when the loss is read
            loss, *noted = self._single(call.executor, iterator)
            value = float(loss)
        except (StopIteration, tf.errors.OutOfRangeError):
            eager.forget_end_of_data()
            return LoopResult(0, tf.constant(np.nan), 0.0, True)
        return LoopResult(1, loss, value, False, *noted)
