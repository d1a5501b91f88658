"""The inner loop on several machines, which agree on every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.cluster.group import CHIEF, State
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.functions import eager, functions
from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.loop.device_loop import Loop
from tpu_estimator_compat.engine.loop.result import LoopResult
from tpu_estimator_compat.engine.step.program import StepProgram


class WorkersLoop(Loop):
    """Runs n steps together with other machines, each of which has its own data.

    Before each step the machines exchange their states; see `cluster/group.py`. The loss is the
    same on all machines.

    Args:
      agree: takes the machines' states when the loop ends early, and before single steps; returns
        whether all machines make the next step.
      interrupted: see `Loop`. The others learn of it when this machine stops.
    """

    def __init__(
        self,
        group: Workers,
        step: StepProgram,
        *,
        agree: Callable[[np.ndarray], bool],
        interrupted: Callable[[], bool],
    ):
        super().__init__(step, Tuner(may_choose=False), interrupted)
        self._workers = group
        self._function = functions.PerExecutor(lambda: functions.IteratorFunction(self._build))
        self._agree = agree
        self._turn = workers.isolated(self._together)
        self._tell = functions.function(group.states)
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
                lambda: tf.zeros([], self._step.loss_dtype),
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
        def body(i, ready, loss, total):
            ready, new = self._turn(iterator.get_next_as_optional())
            loss = tf.where(ready, new, loss)
            total += tf.where(ready, tf.cast(new, tf.float64), 0.0)
            return i + tf.cast(ready, tf.int64), ready, loss, total

        start = (
            tf.constant(0, tf.int64),
            tf.constant(True),
            tf.zeros([], self._step.loss_dtype),
            tf.constant(0.0, tf.float64),
        )
        return tf.while_loop(
            lambda i, ready, loss, _: tf.logical_and(self._unfinished(i, steps, loss), ready),
            body,
            start,
        )

    def _run(self, iterator: Iterator, call: Call) -> LoopResult:
        of_call = tf.constant(call.steps, tf.int64)
        done, ready, loss, total = self._function(call.executor, iterator, of_call)
        if not bool(ready):
            self._agree(self._states.numpy())
        return LoopResult(int(done), loss, float(total), not bool(ready))

    def ready(self, element: Any) -> bool:
        """Whether all machines have an element; tells them whether `element` has a value."""
        state = State.READY if bool(element.has_value()) else State.OUT_OF_DATA
        states = self._tell(tf.constant(state, tf.int32)).numpy()
        return self._agree(self._workers.served(states, state))
