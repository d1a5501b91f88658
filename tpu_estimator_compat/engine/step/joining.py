"""Joins the replicas' values of a tensor into one, on this machine or over several.

The loss becomes the mean over replicas; tensors for the host part are concatenated; any other fetch
is the first replica's.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.engine.step.plan import StepPlan


class JoinReplicas:
    """Joins the values of this machine's replicas, outside of the replicas' program."""

    def __init__(self, plan: StepPlan, strategy: tf.distribute.Strategy):
        self.plan, self.strategy = plan, strategy

    def exchanges(self, sent: list[tf.Tensor]) -> set[str]:
        """Names of the exchanges between machines that the tensors `sent` to the host take."""
        del sent
        return set()

    def own(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        """The value that a replica returns for a fetch; called in replica context."""
        del tensor
        return value

    def sent(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        """The value that a replica returns for the host; called in replica context."""
        del tensor
        return value

    def fetched(self, tensor: tf.Tensor, value: Any) -> tf.Tensor:
        """The value of a fetch, from the replicas' values."""
        if self.plan.is_loss(tensor):
            mean = self.strategy.reduce(tf.distribute.ReduceOp.MEAN, value, axis=None)
            return tf.cast(mean, tensor.dtype)  # the mean of integers is a float
        return self.first(value)

    def on_host(self, value: Any) -> tf.Tensor:
        """The value that the host takes, from the replicas' values."""
        parts = self.strategy.experimental_local_results(value)
        if len(parts) == 1 or self.plan.same_on_all_replicas:
            return parts[0]
        return tf.concat(parts, axis=0)

    def first(self, value: Any) -> tf.Tensor:
        return self.strategy.experimental_local_results(value)[0]


class JoinWorkers(JoinReplicas):
    """Joins the values of all machines' replicas by collectives, within the replicas' program."""

    def __init__(self, plan: StepPlan, strategy: tf.distribute.Strategy, group: Workers):
        super().__init__(plan, strategy)
        self._group = group

    def exchanges(self, sent: list[tf.Tensor]) -> set[str]:
        return set() if self.plan.same_on_all_replicas else set(map(exchange_name, sent))

    def own(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        if not self.plan.is_loss(tensor):
            return value
        [total] = self._group.sum_over_replicas([value], f"mean/{tensor.name}")
        return tf.cast(total / tf.cast(self._group.replicas, value.dtype), value.dtype)

    def sent(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        if self.plan.same_on_all_replicas:
            return value
        return self._group.concatenate(value, exchange_name(tensor))

    def fetched(self, tensor: tf.Tensor, value: Any) -> tf.Tensor:
        del tensor
        return self.first(value)

    def on_host(self, value: Any) -> tf.Tensor:
        return self.first(value)


def joining(plan: StepPlan, strategy: tf.distribute.Strategy) -> JoinReplicas:
    """A `JoinWorkers` where several machines train together, else a `JoinReplicas`."""
    group = workers.of(strategy)
    return JoinWorkers(plan, strategy, group) if group else JoinReplicas(plan, strategy)


def exchange_name(tensor: tf.Tensor) -> str:
    """The name by which machines exchange a tensor's values over all replicas."""
    return f"over_replicas/{tensor.name}"
