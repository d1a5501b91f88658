"""Host calls of a step: in each step or in every n-th, made by the step itself or from a queue."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import tensorflow as tf

from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.host_part import HostPart
from tpu_estimator_compat.engine.step.host_queue import HostCallQueue


class HostCalls:
    """Host calls that each step makes itself.

    Attributes:
      part: the operations of the calls.
      queue: the queue in which calls wait; None where steps make their calls from the start.
      every: n, where a branch makes the calls in every n-th step of a loop; None for no branch.
    """

    queue: HostCallQueue | None = None
    every: int | None = None

    def __init__(self, part: HostPart):
        self.part = part

    def cache_key(self) -> Hashable | None:
        """The key that host calls with the same computation share; None where none shares it."""
        own = self.part.cache_key()
        return None if own is None else (own, self.every, *self.handles())

    def handles(self) -> dict[str, tf.Tensor]:
        """Handles of resources that calls use besides the variables of the graph, by name."""
        return {}

    def __call__(self, given: Mapping[Key, tf.Tensor]) -> None:
        """Builds the calls of a step; see `HostPart`."""
        if self.part.program.targets:
            self.part(given)


class QueuedHostCalls(HostCalls):
    """Host calls that go through a queue; after `queue.leave()`, each step makes its own."""

    def __init__(self, part: HostPart, queue: HostCallQueue):
        super().__init__(part)
        self.queue: HostCallQueue = queue

    def handles(self) -> dict[str, tf.Tensor]:
        return {} if self.queue.left else {"queue": self.queue.handle}

    def __call__(self, given: Mapping[Key, tf.Tensor]) -> None:
        if self.queue.left:
            super().__call__(given)
        else:
            self.queue.put([given[key(t)] for t in self.part.program.feeds])


class HostCallsOfEveryNth(HostCalls):
    """Host calls of every n-th step of a loop; a variable on the host counts the steps."""

    def __init__(self, calls: HostCalls, step_in_loop: tf.Variable, every: int):
        super().__init__(calls.part)
        self.queue = calls.queue
        self.every = every
        self._calls, self._step_in_loop = calls, step_in_loop

    def handles(self) -> dict[str, tf.Tensor]:
        return {**self._calls.handles(), "step_in_loop": self._step_in_loop.handle}

    def __call__(self, given: Mapping[Key, tf.Tensor]) -> None:
        def call() -> tf.Tensor:
            self._calls(given)
            return tf.constant(True)

        due = tf.equal(self._step_in_loop % self.every, 0)
        tf.cond(due, call, lambda: tf.constant(False))
        self._step_in_loop.assign_add(1)


def host_calls(
    part: HostPart, queue: HostCallQueue | None, step_in_loop: tf.Variable | None, every: int
) -> HostCalls:
    """The host calls of a step: of every n-th where `step_in_loop` counts them, else of all."""
    calls = HostCalls(part) if queue is None else QueuedHostCalls(part, queue)
    if step_in_loop is None or not part.program.targets:
        return calls
    return HostCallsOfEveryNth(calls, step_in_loop, every)
