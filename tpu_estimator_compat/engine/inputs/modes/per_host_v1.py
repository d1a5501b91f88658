"""PER_HOST_V1: a batch of a host's input_fn is split among its replicas."""

from tpu_estimator_compat.engine.inputs import splitting
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, TPUInputMode


class PerHostV1(TPUInputMode):
    """A replica is fed a slice of each batch of its host."""

    @property
    def input_batch_size(self) -> int | None:
        """The batch size in `params` of input_fn: one host's share."""
        # Where a replica spans hosts, a host gives whole batches of replicas.
        hosts = min(self.topology.num_hosts, self.topology.num_replicas)
        return self.batch_size and self.batch_size // hosts

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        replicas = self.topology.replicas_per_host
        return splitting.split(dataset, replicas, range(replicas), self.batch_axis)
