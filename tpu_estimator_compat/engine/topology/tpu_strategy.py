"""TF1's TPUStrategy, with its arguments."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.topology import local, tpu_system
from tpu_estimator_compat.engine.topology.local import LocalResolver


class TPUStrategy:
    """`tf.compat.v1.distribute.experimental.TPUStrategy`: for `RunConfig(train_distribute=...)`.

    It wraps the `tf.distribute.TPUStrategy` of the resolver's TPU, or, without a TPU, a strategy
    over the replicas of this machine, and has all methods of the wrapped strategy.

    Args:
      tpu_cluster_resolver: a `tf.distribute.cluster_resolver.TPUClusterResolver`; None to look for
        a TPU in the environment and in this machine.
      steps_per_run: steps that an estimator runs between calls of hooks; None for 1.
      device_assignment: a `tf.tpu.experimental.DeviceAssignment` that places replicas; None for
        all cores. Without effect where there is no TPU.

    Raises:
      ValueError: `steps_per_run` is not positive.
      TypeError: `tpu_cluster_resolver` is no resolver.
      RuntimeError: the TPU cannot be reached.

    Example:
      >>> strategy = TPUStrategy(steps_per_run=10)
      >>> RunConfig(train_distribute=strategy).train_distribute.steps_per_run
      10
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        steps_per_run: int | None = None,
        device_assignment: Any = None,
    ):
        if steps_per_run is not None and steps_per_run < 1:
            raise ValueError(f"steps_per_run must be positive; got {steps_per_run}")
        self._steps_per_run = steps_per_run or 1
        if isinstance(tpu_cluster_resolver, LocalResolver):
            tpu_cluster_resolver = None
        resolver = tpu_cluster_resolver or tpu_system.in_environment()
        if resolver is not None and not hasattr(resolver, "cluster_spec"):
            raise TypeError(
                "tpu_cluster_resolver must be a TPUClusterResolver, got "
                f"{type(resolver)}: {resolver!r}. An address is given as TPUClusterResolver(tpu=..)"
            )
        self._resolver = resolver
        if resolver is None:
            self._strategy = local.strategy()
        elif device_assignment is None:
            self._strategy = tpu_system.strategy(resolver)
        else:
            tpu_system.initialize(resolver)
            self._strategy = tpu_system.over_cores(resolver, device_assignment)

    @property
    def strategy(self) -> tf.distribute.Strategy:
        """The wrapped strategy of today's TensorFlow."""
        return self._strategy

    @property
    def cluster_resolver(self) -> Any:
        """The resolver of the TPU; None where there is no TPU."""
        return self._resolver

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas over which gradients are aggregated."""
        return self._strategy.num_replicas_in_sync

    @property
    def steps_per_run(self) -> int:
        """Steps that an estimator runs between calls of hooks."""
        return self._steps_per_run

    def __deepcopy__(self, memo: dict[int, Any]) -> TPUStrategy:
        return self  # copies of a configuration share its strategy

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_strategy":
            raise AttributeError(name)
        return getattr(self._strategy, name)
