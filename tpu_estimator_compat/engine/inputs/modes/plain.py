"""Input, except with `use_tpu=True`: whole batches, one input_fn call per host."""

import dataclasses
from collections.abc import Sequence

from tpu_estimator_compat.engine.inputs.calling import CalledInput
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, InputMode, Invocation


@dataclasses.dataclass(frozen=True)
class Plain(InputMode):
    """Replicas take the batches of their host's input_fn in turn; SLICED is an error."""

    sliced: bool = False

    def check(self) -> None:
        if self.sliced:
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )

    def invocations(self) -> list[Invocation]:
        return [Invocation(host, host) for host in self.topology.hosts]

    def check_called(self, called: CalledInput) -> None:
        del called

    def deal(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        return datasets
