"""PER_SHARD_V1: every replica has an input_fn call of its own. In training only."""

from tpu_estimator_compat.engine.inputs.modes.base import Dataset, Invocation, TPUInputMode


class PerShardV1(TPUInputMode):
    """A replica is fed the batches of its call."""

    @property
    def calls(self) -> int:
        """Number of input_fn calls on all hosts."""
        return self.topology.num_replicas

    def invocations(self) -> list[Invocation]:
        """The calls of input_fn that this process makes, host by host."""
        share, hosts = self.topology.replicas_per_host, self.topology.hosts
        return [Invocation(host, host * share + i) for host in hosts for i in range(share)]

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return dataset
