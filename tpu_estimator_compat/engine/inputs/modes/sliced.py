"""SLICED: one input_fn call in all, whose batches all replicas share; outside training only."""

from typing import ClassVar

from tpu_estimator_compat.engine.inputs import splitting
from tpu_estimator_compat.engine.inputs.modes.base import Dataset
from tpu_estimator_compat.engine.inputs.modes.broadcast import Broadcast
from tpu_estimator_compat.engine.inputs.modes.per_host_v2 import PerHostV2


class Sliced(Broadcast):
    """Each replica gets a slice of each batch of the one call."""

    same_for_all: ClassVar[bool] = False

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        share = self.topology.replicas_per_host
        wanted = range(host * share, (host + 1) * share)
        return splitting.split(dataset, self.topology.num_replicas, wanted, self.batch_axis)


class SlicedPerHostV2(Sliced, PerHostV2):
    """SLICED where training uses PER_HOST_V2, whose checks still apply."""
