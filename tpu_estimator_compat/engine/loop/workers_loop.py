"""The inner loop of several workers, which agree on every step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.loop.device_loop import Step
from tpu_estimator_compat.engine.loop.result import LoopResult, ends_training, in_pieces
from tpu_estimator_compat.engine.runtime import eager, functions, workers
from tpu_estimator_compat.engine.runtime.group import CHIEF, State
from tpu_estimator_compat.engine.runtime.tuners import LoopTuner
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.runtime.workers import Workers


class WorkersLoop:
    """Runs a step n times together with other machines, each of which has data of its own.

    Before each step the machines tell each other their states; see `runtime/group.py`.

    Args:
      group: the machines.
      step: builds one step into the function under construction; its first output is the loss.
      loss_dtype: dtype of the loss.
      stop_on_nan: see `DeviceLoop`. The loss is the same on all machines.
      agree: given the states of the machines when the loop ends early, and before single steps;
        whether all machines make the next one.
      interrupted: see `DeviceLoop`. The others learn of it when this machine stops.
      tuning: see `DeviceLoop`.
    """

    def __init__(
        self,
        group: Workers,
        step: Step,
        loss_dtype: tf.DType,
        *,
        stop_on_nan: bool,
        agree: Callable[[np.ndarray], bool],
        interrupted: Callable[[], bool],
        tuning: Tuning = DEFAULTS,
    ):
        self._workers = group
        self._step = step
        self._loss_dtype = loss_dtype
        self._stop_on_nan = stop_on_nan
        self._interrupted = interrupted
        self._clock = tuning.clock
        self._tuner = LoopTuner(tuning, may_choose=False)
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(self._build))
        self._agree = agree
        self._turn = workers.isolated(self._together)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._states = tf.Variable(
                tf.zeros([group.count], tf.int32), trainable=False, name="states_of_machines"
            )

    def _together(self, element: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Whether all machines were ready, and then the loss of the step that they made."""
        state = tf.where(element.has_value(), State.READY, State.OUT_OF_DATA)
        states = self._served(self._workers.states(state), state)
        ready = tf.reduce_all(tf.equal(states, State.READY))
        with tf.control_dependencies([self._states.assign(states)]):
            loss = tf.cond(
                ready,
                lambda: tf.reshape(self._step(element.get_value())[0], []),
                lambda: tf.zeros([], self._loss_dtype),
            )
        return ready, loss

    def _served(self, states: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        """The states when the chief has what it asked for, if it did."""
        if not self._workers.servers:
            return states

        def serve(states: tf.Tensor, state: tf.Tensor) -> np.ndarray:
            return self._workers.served(states.numpy(), State(int(state)))

        return tf.cond(
            tf.equal(states[CHIEF], State.ASKING),
            lambda: tf.ensure_shape(tf.py_function(serve, [states, state], tf.int32), states.shape),
            lambda: states,
        )

    def _build(self, iterator: Iterator, steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def unfinished(i, ready, loss, total):
            del total
            more = tf.logical_and(i < steps, ready)
            if self._stop_on_nan:
                more = tf.logical_and(more, tf.logical_not(ends_training(loss)))
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

    def __call__(self, iterator: Iterator, steps: int) -> LoopResult:
        """Runs up to `steps` steps; see `DeviceLoop`."""
        return in_pieces(
            functools.partial(self._run_piece, iterator),
            steps,
            stop_on_nan=self._stop_on_nan,
            interrupted=self._interrupted,
        )

    def _run_piece(self, iterator: Iterator, steps: int) -> LoopResult:
        call = self._tuner.next(steps)
        started = self._clock()
        of_call = tf.constant(call.steps, tf.int64)
        done, ready, loss, total = self._function(call.executor, iterator, of_call)
        if not bool(ready):
            self._agree(self._states.numpy())
        result = LoopResult(int(done), loss, float(total), not bool(ready))
        self._tuner.record_piece(result.steps, self._clock() - started)
        return result

    def ready(self, element: Any) -> bool:
        """Tells the others whether there is an `element` (an optional); True if all have one."""
        state = State.READY if bool(element.has_value()) else State.OUT_OF_DATA
        states = self._tell(tf.constant(state, tf.int32)).numpy()
        return self._agree(self._workers.served(states, state))

    @functools.cached_property
    def _tell(self) -> Callable[[tf.Tensor], tf.Tensor]:
        return functions.function(self._workers.states)
