"""The inner loop: n steps on the devices in one call, without returning to Python in between."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.program.host_queue import HostCallQueue
from tpu_estimator_compat.runtime import eager, functions, workers
from tpu_estimator_compat.runtime.executors import DEFAULT, ExecutorChoice
from tpu_estimator_compat.runtime.workers import State, Workers

Step = Callable[[Any], list[tf.Tensor]]
# While the devices run, Python gets no signals: a loop of an hour would leave SIGTERM and Ctrl-C
# unanswered for an hour.
_PIECE_SECONDS = 1.0
_FIRST_PIECE = 16
_SINGLE_RUNS = 20  # after so many runs of one step in a row, another function is worth its tracing
_SMALL_STEP = 5e-3  # seconds; of longer steps, what a loop costs besides is a small part
_SINGLE_TURNS = 25  # of single steps, whose times vary more
_PIECE_SECONDS_BEFORE_CALLS = 0.05  # the host calls of a piece begin when it ends


@dataclasses.dataclass(frozen=True)
class LoopResult:
    """What n steps left behind.

    Attributes:
      steps: how many steps ran; fewer than asked for where the data ended or the loss was NaN.
      loss: the last step's loss, a scalar tensor.
      loss_sum: the sum of the steps' losses.
      exhausted: whether the data ended.
      counter: the loop's counter; None where it has none, and where the data ended.
      counter_before: what it was before the last step; None where the loop does not note it, too.
    """

    steps: int
    loss: tf.Tensor
    loss_sum: float
    exhausted: bool
    counter: tf.Tensor | None = None
    counter_before: tf.Tensor | None = None


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
      next_element: takes the next element from the iterator, where a step is built.
      interrupted: asked about once per second whether to end the loop early.
      calls: where the steps put their host calls, if they do.
      counter: a scalar variable whose value is wanted.
      notes_before: whether its value before the last step is wanted, too: a hook that has control
        around every step reads it there.
    """

    def __init__(
        self,
        step: Step,
        loss_dtype: tf.DType,
        *,
        stop_on_nan: bool,
        executors: ExecutorChoice,
        next_element: Callable[[Iterator], Any] = next,
        interrupted: Callable[[], bool] = lambda: False,
        calls: HostCallQueue | None = None,
        counter: tf.Variable | None = None,
        notes_before: bool = False,
    ):
        self.counter = counter
        self.notes_before = notes_before and counter is not None
        self._step = step
        self._executors = executors
        self._stop_on_nan = stop_on_nan
        self._loss_dtype = loss_dtype
        self._next_element = next_element
        self._interrupted = interrupted
        self._calls = calls
        self._seconds_per_step: float | None = None
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
            self._loss = tf.Variable(tf.zeros([], loss_dtype), trainable=False, name="last_loss")
            self._sum = tf.Variable(0.0, dtype=tf.float64, trainable=False, name="loss_sum")
            if counter is not None and notes_before:
                self._before = tf.Variable(0, dtype=counter.dtype, trainable=False, name="before")
        self._functions: dict[str, functions.IteratorFunction] = {}
        self._single = SingleStep(step, next_element, counter, executors.may_choose)
        self._single_runs = 0

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def unfinished(i, loss):
            if not self._stop_on_nan:
                return i < steps
            return tf.logical_and(i < steps, tf.logical_not(tf.math.is_nan(loss)))

        def body(i, loss):
            del loss
            data = self._next_element(iterator)
            if self.notes_before:
                self._before.assign(self.counter)
            loss = tf.reshape(self._step(data)[0], [])
            # Not before the element has arrived: at the end of the data nothing may be counted.
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
        """Runs up to `steps` steps.

        Args:
          iterator: gives one input element per step.
          steps: how many to run.

        Returns:
          What was run. Zero steps where the data had ended already. Host calls may still be made:
          see `finish_calls`.

        Raises:
          tf.errors.OpError: whatever a step or a host call raised, the end of the data excepted.
        """
        made = LoopResult(0, self._loss, 0.0, False)
        with eager.eager_mode():
            while made.steps < steps:
                if self._calls is not None and self._calls.trial.quick:
                    self._take_calls_into_steps()
                piece = self._piece(steps - made.steps)
                if self._calls is not None:
                    piece = self._calls.room(piece)
                started = time.perf_counter()
                result = self._run_and_call(iterator, piece)
                seconds = time.perf_counter() - started
                self._seconds_per_step = seconds / max(1, result.steps)
                made = dataclasses.replace(
                    result,
                    steps=made.steps + result.steps,
                    loss_sum=made.loss_sum + result.loss_sum,
                )
                if made.exhausted or self._is_nan(made.loss) or self._interrupted():
                    break
            return made

    def finish_calls(self) -> None:
        """Waits until the host calls of all steps are made.

        Raises:
          tf.errors.OpError: what a call raised.
        """
        if self._calls is not None:
            self._calls.finish()

    @property
    def _settled(self) -> bool:
        """Whether steps are what they will be: before that, no executor is chosen for them."""
        return self._calls is None or self._calls.trial.quick is False

    def _take_calls_into_steps(self) -> None:
        """Leaves the queue, empty, and has the next step traced with its host call in it."""
        assert self._calls is not None
        self._calls.leave()
        if not self._calls.is_flat:
            self._executors.keep_default()
        self._calls = None
        self._functions.clear()
        self._single.trace_again(self._executors.may_choose)

    def _run_and_call(self, iterator: Iterator, steps: int) -> LoopResult:
        if self._calls is None:
            return self._run(iterator, steps)
        try:
            result = self._run(iterator, steps)
        except BaseException:
            self._calls.hand_over()
            with contextlib.suppress(Exception):  # the first error counts
                self._calls.finish()
            raise
        self._calls.hand_over()
        if self._calls.failed:
            self._calls.finish()
        return result

    def _piece(self, steps: int) -> int:
        """How many of `steps` to run before Python looks for signals: about a second's worth."""
        if self._settled:
            steps = self._executors.piece(steps)
        if self._seconds_per_step is None:
            return min(steps, _FIRST_PIECE)
        seconds = _PIECE_SECONDS if self._calls is None else _PIECE_SECONDS_BEFORE_CALLS
        return max(1, min(steps, int(seconds / self._seconds_per_step)))

    def _is_nan(self, loss: tf.Tensor) -> bool:
        return self._stop_on_nan and bool(np.isnan(loss.numpy()))

    def _run(self, iterator: Iterator, steps: int) -> LoopResult:
        if steps > 1:
            self._single_runs = 0
        elif self._seconds_per_step is not None and self._seconds_per_step < _SMALL_STEP:
            self._single_runs += 1
        if self._single_runs > _SINGLE_RUNS:
            return self._single(iterator, self._settled)
        settled = self._settled
        executor = self._executors.next(steps) if settled else DEFAULT
        # A function is traced for its executor: only the default one takes loops apart.
        if executor not in self._functions:
            self._functions[executor] = functions.IteratorFunction(self._build, tf.int64)
        function = self._functions[executor]
        started = time.perf_counter()
        try:
            with functions.call_options(executor=executor):
                done, loss, total, *noted = function(iterator, steps)
        except StopIteration:  # before anything ran
            return LoopResult(0, self._loss.read_value(), 0.0, True)
        except tf.errors.OutOfRangeError:
            total = float(self._sum.read_value())
            return LoopResult(int(self._done), self._loss.read_value(), total, True)
        if settled:
            self._executors.record(executor, int(done), time.perf_counter() - started)
        return LoopResult(int(done), loss, float(total), False, *noted)


class SingleStep:
    """Runs one step in a call, for listeners that have control around every step.

    A loop of one step takes some times as long as a small step does: it has to be entered, and
    left.

    Args:
      step: builds one step into the function under construction; its first output is the loss.
      next_element: takes the next element from the iterator, where a step is built.
      counter: see `DeviceLoop`.
      may_choose: whether the single-threaded executor can run the step.
    """

    def __init__(
        self,
        step: Step,
        next_element: Callable[[Iterator], Any],
        counter: tf.Variable | None,
        may_choose: bool,
    ):
        self._step = step
        self._next_element = next_element
        self._counter = counter
        self.trace_again(may_choose)

    def trace_again(self, may_choose: bool) -> None:
        """Forgets what was traced: the step has changed."""
        self._executors = ExecutorChoice(
            may_choose, fewest_steps=1, turns=_SINGLE_TURNS, score=statistics.median
        )
        self._functions: dict[str, functions.IteratorFunction] = {}

    def _build(self, iterator: Iterator) -> list[tf.Tensor]:
        data = self._next_element(iterator)
        before = [] if self._counter is None else [self._counter.read_value()]
        loss = tf.reshape(self._step(data)[0], [])
        return [loss, *([] if self._counter is None else [self._counter.read_value()]), *before]

    def __call__(self, iterator: Iterator, settled: bool) -> LoopResult:
        """Makes one step, or none where the data has ended.

        Args:
          iterator: gives the step its element.
          settled: whether the step is what it will be, so that an executor may be chosen for it.
        """
        executor = self._executors.next(1) if settled else DEFAULT
        if executor not in self._functions:
            self._functions[executor] = functions.IteratorFunction(self._build)
        started = time.perf_counter()
        try:
            with functions.call_options(executor=executor):
                loss, *noted = self._functions[executor](iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            return LoopResult(0, tf.constant(np.nan), 0.0, True)
        if settled:
            self._executors.record(executor, 1, time.perf_counter() - started)
        return LoopResult(1, loss, float(loss), False, *noted)


class WorkersLoop(DeviceLoop):
    """Runs a step n times together with other machines, each of which has data of its own.

    Before each step the machines tell each other whether they can make it. So no machine waits in
    an exchange for another that has no more data, or that a hook has stopped.

    Attributes:
      states: what the machines said when the loop ended early; None before that.

    Args:
      group: the machines.
      step: builds one step into the function under construction; its first output is the loss.
      loss_dtype: dtype of the loss.
      stop_on_nan: see `DeviceLoop`. The loss is the same on all machines.
      interrupted: see `DeviceLoop`. The others learn of it when this machine stops.
    """

    def __init__(
        self,
        group: Workers,
        step: Step,
        loss_dtype: tf.DType,
        *,
        stop_on_nan: bool,
        interrupted: Callable[[], bool],
    ):
        super().__init__(
            step,
            loss_dtype,
            stop_on_nan=stop_on_nan,
            executors=ExecutorChoice(may_choose=False),
            interrupted=interrupted,
        )
        self.states: np.ndarray | None = None
        self._workers = group
        self._turn = workers.isolated(self._together)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._said = tf.Variable(
                tf.zeros([group.count], tf.int32), trainable=False, name="states_of_machines"
            )

    def _together(self, element: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Whether all machines were ready, and then the loss of the step that they made."""
        states = self._workers.states(tf.where(element.has_value(), State.READY, State.OUT_OF_DATA))
        ready = tf.reduce_all(tf.equal(states, State.READY))
        with tf.control_dependencies([self._said.assign(states)]):
            loss = tf.cond(
                ready,
                lambda: tf.reshape(self._step(element.get_value())[0], []),
                lambda: tf.zeros([], self._loss_dtype),
            )
        return ready, loss

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def unfinished(i, ready, loss, total):
            del total
            more = tf.logical_and(i < steps, ready)
            if self._stop_on_nan:
                more = tf.logical_and(more, tf.logical_not(tf.math.is_nan(loss)))
            return more

        def body(i, ready, loss, total):
            ready, new = self._turn(iterator.get_next_as_optional())
            loss = tf.where(ready, new, loss)
            total += tf.where(ready, tf.cast(new, tf.float64), 0.0)
            return i + tf.cast(ready, tf.int64), ready, loss, total

        start = (
            tf.constant(0, tf.int64),
            tf.constant(True),
            tf.zeros([], self._loss_dtype),
            tf.constant(0.0, tf.float64),
        )
        return tf.while_loop(unfinished, body, start)

    def _run(self, iterator: Iterator, steps: int) -> LoopResult:
        if DEFAULT not in self._functions:
            self._functions[DEFAULT] = functions.IteratorFunction(self._build, tf.int64)
        done, ready, loss, total = self._functions[DEFAULT](iterator, steps)
        if not bool(ready):
            self.states = self._said.numpy()
        return LoopResult(int(done), loss, float(total), not bool(ready))

    def ready(self, element: Any) -> bool:
        """Tells the others whether there is an `element` (an optional); True if all have one."""
        state = State.READY if bool(element.has_value()) else State.OUT_OF_DATA
        states = self._tell(tf.constant(state, tf.int32)).numpy()
        if states.any():
            self.states = states
        return not states.any()

    @functools.cached_property
    def _tell(self) -> Callable[[tf.Tensor], tf.Tensor]:
        return functions.function(self._workers.states)
