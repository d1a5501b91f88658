"""PER_SHARD_V1: one input_fn call per replica, in training only."""

from tpu_estimator_compat.engine.inputs.modes.base import Dataset, Invocation, TPUInputMode


class PerShardV1(TPUInputMode):
    """Each replica gets the batches of its own call."""

    @property
    def calls(self) -> int:
        return self.topology.num_replicas

    def invocations(self) -> list[Invocation]:
        share, hosts = self.topology.replicas_per_host, self.topology.hosts
        return [Invocation(host, host * share + i) for host in hosts for i in range(share)]

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return dataset
