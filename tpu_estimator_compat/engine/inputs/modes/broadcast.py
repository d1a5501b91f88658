"""BROADCAST: one input_fn call in all; every replica gets its whole batches."""

from typing import ClassVar

from tpu_estimator_compat.engine.inputs import splitting
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, Invocation, TPUInputMode


class Broadcast(TPUInputMode):
    """Every replica of every host gets the same batches."""

    same_for_all: ClassVar[bool] = True

    @property
    def calls(self) -> int:
        return 1

    @property
    def input_batch_size(self) -> int | None:
        return self.batch_size

    def invocations(self) -> list[Invocation]:
        """The one call; every process makes it."""
        return [Invocation(0, 0)]

    def _check_several_hosts(self) -> None:
        """Accepts any number of hosts."""

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return splitting.copies(dataset, self.topology.replicas_per_host)
