"""The replicas of one mode, and the hosts that feed them."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from tpu_estimator_compat.engine.cluster import workers
from tpu_estimator_compat.engine.cluster.workers import Workers
from tpu_estimator_compat.environment import SESSION, TENSORFLOW
from tpu_estimator_compat.tf_internals import distribute_lib


@dataclasses.dataclass(frozen=True)
class Topology:
    """The strategy, replicas and hosts of one mode.

    Attributes:
      tpu_semantics: whether TPU rules hold: per-replica batch sizes, static shapes, one return to
        Python per loop.
      num_hosts: machines that feed the replicas.
      this_host: 0-based index of the one host that this process feeds; None where it feeds all.
      stands_in: whether devices of this machine replace the cores of a missing TPU.
    """

    strategy: tf.distribute.Strategy
    tpu_semantics: bool
    num_hosts: int = 1
    this_host: int | None = None
    stands_in: bool = dataclasses.field(default=False, kw_only=True)

    @classmethod
    def over(cls, strategy: tf.distribute.Strategy, tpu_semantics: bool) -> Topology:
        if group := workers.of(strategy):
            return cls(strategy, tpu_semantics, group.count, group.index)
        if isinstance(strategy, tf.distribute.TPUStrategy):
            # All hosts: with a device assignment, `extended.num_hosts` counts only hosts of first
            # cores.
            return cls(strategy, tpu_semantics, strategy.extended._tpu_metadata.num_hosts)
        return cls(strategy, tpu_semantics)

    @property
    def seen_strategy(self) -> tf.distribute.Strategy | None:
        """The strategy that user functions see: none with `use_tpu=True`, as in the original."""
        is_default = isinstance(self.strategy.extended, distribute_lib._DefaultDistributionExtended)
        return None if self.tpu_semantics or is_default else self.strategy

    @property
    def runtime(self) -> str:
        """The runtime's name in `RunConfig(runtime=...)`."""
        return TENSORFLOW

    @property
    def on_tpu(self) -> bool:
        """Whether the replicas are cores of a TPU, for TensorFlow."""
        return isinstance(self.strategy, tf.distribute.TPUStrategy)

    @property
    def compiles(self) -> bool:
        """Whether a compiler gets the replicas' steps, and may divide one over several devices.

        Shapes are static then, and strings are refused.
        """
        return self.on_tpu

    @property
    def is_first_process(self) -> bool:
        """Whether this is the first of the processes that evaluate or predict the same data."""
        return True

    @property
    def compiles_steps(self) -> bool:
        """Whether XLA compiles the device part of all steps."""
        return self.on_tpu

    @property
    def workers(self) -> Workers | None:
        """The machines that run steps together, one process each; None for one process."""
        return workers.of(self.strategy)

    @property
    def computes_here(self) -> bool:
        """Whether only the CPUs of this process compute: no accelerator, and no other machine."""
        kinds = {device.device_type for device in tf.config.list_physical_devices()}
        return self.workers is None and kinds == {"CPU"}

    @property
    def hosts(self) -> list[int]:
        """0-based indices of the hosts that this process feeds.

        Where replicas of a TPU span hosts, the host of a replica's first core feeds it.
        """
        if self.this_host is not None:
            return [self.this_host]
        if self.on_tpu:
            first_cores = map(tf.DeviceSpec.from_string, self.strategy.extended.worker_devices)
            return list(dict.fromkeys(core.task or 0 for core in first_cores))
        return list(range(self.num_hosts))

    @property
    def num_replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    @property
    def replicas_per_element(self) -> int | None:
        """Number of replicas that share an element; None where the strategy distributes it."""
        return None

    @property
    def replicas_per_host(self) -> int:
        """Replicas that each host feeds; 1 where replicas span hosts."""
        return max(1, self.num_replicas // self.num_hosts)


class SessionTopology(Topology):
    """One device or a cluster with parameter servers, for one of TensorFlow's sessions."""

    runtime = SESSION
