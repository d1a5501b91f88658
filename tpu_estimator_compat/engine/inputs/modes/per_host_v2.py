"""PER_HOST_V2: replicas take the batches of their host's input_fn in turn."""

from typing import ClassVar

from tpu_estimator_compat.engine.inputs import padding
from tpu_estimator_compat.engine.inputs.calling import CalledInput, check_is_dataset
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, TPUInputMode
from tpu_estimator_compat.spec import ModeKeys


class PerHostV2(TPUInputMode):
    """Replica i of n of a host gets batches i, i+n, i+2n, ... of its input_fn."""

    replicas_span_hosts: ClassVar[bool] = True

    def _check_several_hosts(self) -> None:
        if self.mode == ModeKeys.PREDICT and self.topology.num_replicas != 1:
            super()._check_several_hosts()

    def check_called(self, called: CalledInput) -> None:
        check_is_dataset(
            called,
            "`input_fn` must return a `Dataset` for the PER_HOST_V2 input pipeline configuration.",
        )
        super().check_called(called)

    def _per_replica(self, host: int, dataset: Dataset) -> Dataset:
        if self.mode == ModeKeys.PREDICT:
            return padding.fill_last_step(dataset, self.topology.num_replicas)
        return dataset
