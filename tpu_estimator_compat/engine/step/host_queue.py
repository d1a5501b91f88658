"""Makes host calls in a thread while steps go on: each step puts its tensors in a queue.

No queue op may block, since TensorFlow's few threads serve all functions. So the loop makes room
before its steps, and the thread dequeues only calls that are in the queue.

Where the first calls prove quick, later steps make their calls themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import cancelling, eager, functions, tuning
from tpu_estimator_compat.engine.functions.tuner import Call, Tuner
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.state.variables import VariableStore
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


class HostCallQueue:
    """A queue of host calls, which a thread makes in the order of the steps.

    `program` computes one call; its feeds are a step's tensors.

    Attributes:
      failed: whether a call raised an error. No further call is made then, until `finish`.
      capacity: the number of calls that may wait; see `capacity_for`.
      is_flat: whether the single-threaded executor can make the calls.
      quick: whether calls are quick enough to be a part of their steps; None while unknown.
      left: whether the queue is no longer in use: steps make their calls themselves.
    """

    def __init__(self, program: ReplicaProgram, store: VariableStore, capacity: int):
        self.capacity = capacity
        self.is_flat = not any(map(graph_ops.calls_functions, program.ops))
        self.failed = False
        self.left = False
        self.quick: bool | None = None
        self._tuning = tuning.NUMBERS
        self._tuner = Tuner(self.is_flat)
        self._batches = self._timed_calls = 0
        self._timed_seconds = 0.0
        self._program = program
        self._store = store
        self._variables = {op.name for op in program.handles if op.name in store}
        self._function = functions.PerExecutor(self._trace)
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None
        self._error: BaseException | None = None
        with eager.eager_mode(), tf.device("/cpu:0"):
            self._queue = tf.queue.FIFOQueue(capacity, [t.dtype for t in program.feeds])

    @property
    def handle(self) -> tf.Tensor:
        return self._queue.queue_ref

    def uses(self, variable: str) -> bool:
        """Whether calls read or write the variable of this name."""
        return variable in self._variables

    def put(self, values: Sequence[tf.Tensor]) -> None:
        """Builds an enqueue of a step's tensors, one per feed."""
        self._queue.enqueue(list(values))

    def make_room(self, steps: int) -> None:
        """Waits until the queue has room for the calls of `steps` steps."""
        if self._waiting() + steps > self.capacity:
            self.finish()

    def hand_over(self) -> None:
        """Makes the thread run all calls that wait in the queue."""
        if self.failed or (self._last and not self._last.done() and not self._last.running()):
            return  # the thread's next task will take these calls too
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="host_call")
        call = self._tuner.next(max(1, self._waiting()), trial=self.quick is False)
        self._function.trace(call.executor)  # here: graph building is not thread-safe
        self._last = self._thread.submit(self._make, call)

    def finish(self) -> None:
        """Waits for all calls handed over; raises a call's error, and drops the calls after it."""
        if self._last is not None:
            with cancelling.waiting():
                self._last.result()
            self._last = None
        error, self._error = self._error, None
        if error is None:
            return
        self.failed = False
        with eager.eager_mode():
            while self._waiting():
                self._queue.dequeue()
        raise error

    def leave(self) -> None:
        """Waits for all calls that were handed over; steps built later make their own calls."""
        self.finish()
        self.close()
        self.left = True

    def close(self) -> None:
        """Ends the thread, once all calls are made."""
        if self._thread is not None:
            with cancelling.waiting():
                self._thread.shutdown()
            self._thread = None

    def _waiting(self) -> int:
        with eager.eager_mode():
            return int(self._queue.size())

    def _trace(self) -> Any:
        with eager.eager_mode(), tf.device("/cpu:0"):
            built: Any = functions.function(self._build)
            return built.get_concrete_function()

    def _build(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Builds a loop over the waiting calls; returns their number and their time in seconds."""

        def body(i: tf.Tensor) -> tuple[tf.Tensor]:
            dequeued = self._queue.dequeue()
            values = dequeued if isinstance(dequeued, list) else [dequeued]
            for feed, value in zip(self._program.feeds, values, strict=True):
                value.set_shape(feed.shape)
            self._program(values, self._store.host_handle)
            return (i + 1,)

        count = self._queue.size()
        # Timed inside the function: calling a function takes longer than a quick host call.
        with tf.control_dependencies([count]):
            started = tf.timestamp()
        with tf.control_dependencies([started]):
            made = tf.while_loop(lambda i: i < count, body, (tf.constant(0),))
        with tf.control_dependencies(made):
            return count, tf.timestamp() - started

    def _make(self, call: Call) -> None:
        """In the thread: makes the calls of all steps that wait, on the executor of `call`."""
        if self.failed:
            return
        started = self._tuning.clock()
        try:
            with eager.eager_mode(), tf.device("/cpu:0"):
                count, seconds_of_calls = self._function(call.executor)
                made = int(count)
        except BaseException as error:  # `finish` raises it in the training thread
            self._error, self.failed = error, True
            return
        self._tuner.record(call, made, self._tuning.clock() - started)
        if self.quick is None:
            self._judge(made, float(seconds_of_calls))

    def _judge(self, calls: int, seconds: float) -> None:
        """Sets `quick` by the time of the first calls: a queue costs each step a little."""
        self._batches += 1
        if self._batches == 1:  # the first batch compiles
            return
        self._timed_calls += calls
        self._timed_seconds += seconds
        numbers = self._tuning
        if self._timed_seconds > numbers.trial_calls * numbers.quick_call:
            self.quick = False  # the rest of the trial cannot change it
        elif self._timed_calls >= numbers.trial_calls:
            self.quick = True


def queue_for(
    program: ReplicaProgram, store: VariableStore, others: Collection[tf.Operation]
) -> HostCallQueue | None:
    """A queue for the calls of `program`; None where they cannot wait.

    Calls that use one of `others`, handles that the rest of the step uses, cannot wait.
    """
    capacity = capacity_for(program.feeds)
    if not program.targets or capacity is None or set(others) & set(program.handles):
        return None
    return HostCallQueue(program, store, capacity)


def capacity_for(feeds: Sequence[tf.Tensor]) -> int | None:
    """The number of calls with these `feeds` that may wait; None if large, or of unknown size."""
    if not feeds or any(t.dtype in (tf.string, tf.variant, tf.resource) for t in feeds):
        return None
    if not all(t.shape.is_fully_defined() for t in feeds):
        return None
    return tuning.NUMBERS.queue_capacity(sum(t.shape.num_elements() * t.dtype.size for t in feeds))
