"""PER_HOST_V1: replicas share each batch of their host's input_fn."""

from tpu_estimator_compat.engine.inputs import splitting
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, TPUInputMode


class PerHostV1(TPUInputMode):
    """Each replica gets a slice of each batch of its host."""

    @property
    def input_batch_size(self) -> int | None:
        # Where replicas span hosts, only the host of a replica's first core calls input_fn.
        hosts = min(self.topology.num_hosts, self.topology.num_replicas)
        return self.batch_size and self.batch_size // hosts

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        replicas = self.topology.replicas_per_host
        return splitting.split(dataset, replicas, range(replicas), self.batch_axis)
