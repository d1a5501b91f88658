"""Joins the replicas' values of a tensor into one, on this machine or over several.

Tensors for the host part are concatenated; any other fetch is the first replica's.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.step.plan import StepPlan


class JoinReplicas:
    """Joins values outside of the replicas' program; those of several machines within it."""

    def __init__(self, plan: StepPlan, strategy: tf.distribute.Strategy):
        self._strategy, self._same = strategy, plan.same_on_all_replicas
        self._group = None if self._same else workers.of(strategy)

    def exchanges(self, sent: list[tf.Tensor]) -> set[str]:
        """Names of the exchanges between machines that the tensors `sent` to the host take."""
        return set(map(exchange_name, sent)) if self._group else set()

    def sent(self, tensor: tf.Tensor, value: tf.Tensor) -> tf.Tensor:
        """The value that a replica returns for the host; called in replica context."""
        return self._group.concatenate(value, exchange_name(tensor)) if self._group else value

    def on_host(self, value: Any) -> tf.Tensor:
        """The value that the host takes, from the values that this machine's replicas returned."""
        parts = self._strategy.experimental_local_results(value)
        if len(parts) == 1 or self._same or self._group:
            return parts[0]
        return tf.concat(parts, axis=0)


def exchange_name(tensor: tf.Tensor) -> str:
    """The name by which machines exchange a tensor's values over all replicas."""
    return f"over_replicas/{tensor.name}"
