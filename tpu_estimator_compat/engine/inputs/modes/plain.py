"""Input where the rules of TPU execution do not hold: whole batches, one input_fn call per host."""

import dataclasses
from collections.abc import Sequence

from tpu_estimator_compat.engine.inputs.calling import CalledInput
from tpu_estimator_compat.engine.inputs.modes.base import Dataset, InputMode, Invocation


@dataclasses.dataclass(frozen=True)
class Plain(InputMode):
    """A replica is fed what input_fn gives.

    Attributes:
      sliced: whether SLICED was asked for, which is for TPU only.
    """

    sliced: bool = False

    def check(self) -> None:
        """Raises ValueError where SLICED was asked for."""
        if self.sliced:
            raise ValueError(
                "Invalid TPUConfig `eval_training_input_configuration` value. SLICED mode only "
                "works on use_tpu = True."
            )

    def invocations(self) -> list[Invocation]:
        """The calls of input_fn that this process makes, host by host."""
        return [Invocation(host, host) for host in self.topology.hosts]

    def check_called(self, called: CalledInput) -> None:
        """As `InputMode.check_called`; anything goes."""
        del called

    def deal(self, datasets: Sequence[Dataset]) -> Sequence[Dataset]:
        """As `InputMode.deal`."""
        return datasets
