"""BROADCAST: input_fn is called once in all, and its batches are everyone's."""

from typing import ClassVar

from tpu_estimator_compat.engine.inputs import splitting
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, Invocation, TPUInputMode


class Broadcast(TPUInputMode):
    """Every replica of every host is fed the same whole batches."""

    same_for_all: ClassVar[bool] = True

    @property
    def calls(self) -> int:
        """Number of input_fn calls on all hosts."""
        return 1

    @property
    def input_batch_size(self) -> int | None:
        """The batch size in `params` of input_fn: the global batch size."""
        return self.batch_size

    def invocations(self) -> list[Invocation]:
        """The one call, of which every process makes its own."""
        return [Invocation(0, 0)]

    def _check_several_hosts(self) -> None:
        """Allows any number of them."""

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        return splitting.copies(dataset, self.topology.replicas_per_host)
