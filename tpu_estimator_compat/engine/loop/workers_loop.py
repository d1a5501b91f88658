"""The inner loop on several machines, which agree on every step."""

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
from tpu_estimator_compat.engine.runtime.tuner import Tuner
from tpu_estimator_compat.engine.runtime.tuning import DEFAULTS, Tuning
from tpu_estimator_compat.engine.runtime.workers import Workers


class WorkersLoop:
    """Runs n steps together with other machines, each of which has its own data.

    Before each step the machines exchange their states; see `runtime/group.py`. For arguments that
    are not listed see `DeviceLoop`.

    Args:
      stop_on_nan: see `DeviceLoop`. The loss is the same on all machines.
      agree: takes the machines' states when the loop ends early, and before single steps; returns
        whether all machines make the next step.
      interrupted: see `DeviceLoop`. The others learn of it when this machine stops.
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
        self._tuner = Tuner(tuning, may_choose=False)
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(self._build))
        self._agree = agree
        self._turn = workers.isolated(self._together)
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._states = tf.Variable(
                tf.zeros([group.count], tf.int32), trainable=False, name="states_of_machines"
            )

    def _together(self, element: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Makes a step if all machines are ready; returns whether they are, and the loss."""
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
        """The machines' states, after this machine has served the chief's requests, if any."""
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
        self._tuner.record(call, result.steps, self._clock() - started)
        return result

    def ready(self, element: Any) -> bool:
        """Whether all machines have an element; tells them whether `element` has a value."""
        state = State.READY if bool(element.has_value()) else State.OUT_OF_DATA
        states = self._tell(tf.constant(state, tf.int32)).numpy()
        return self._agree(self._workers.served(states, state))

    @functools.cached_property
    def _tell(self) -> Callable[[tf.Tensor], tf.Tensor]:
        return functions.function(self._workers.states)
