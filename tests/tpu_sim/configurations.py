"""Which TPUs are simulated, and which scenarios each of them runs."""

import dataclasses

from . import scenarios as _scenarios
from .model import SCENARIOS

assert _scenarios  # which names them

SHORT = ("plain", "resume", "host_call", "hook_that_fetches", "keras_model")
ON_FOUR = {"subgroups", "permutations"}
"""Scenarios that need four replicas."""


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A TPU.

    Attributes:
      mesh: chips in x, y and z, and cores of a chip.
      hosts: its machines.
      remote: whether they are other processes.
      cores_per_replica: cores that share a replica; None for one.
      scenarios: what it runs.
      often: the scenarios of every run; None for all. The full run has the others.
    """

    mesh: tuple[int, int, int, int]
    hosts: int = 1
    remote: bool = False
    cores_per_replica: int | None = None
    scenarios: tuple[str, ...] = SHORT
    often: tuple[str, ...] | None = None

    @property
    def cores(self) -> int:
        x, y, z, of_chip = self.mesh
        return x * y * z * of_chip

    def is_often(self, scenario: str) -> bool:
        return self.often is None or scenario in self.often

    @property
    def replicas(self) -> int:
        """How many replicas fit, and how many logical CPUs do the same."""
        return self.cores // (self.cores_per_replica or 1)


CONFIGURATIONS = {
    # Chips of two cores, as v2 and v3 have them.
    "four cores": Configuration((1, 2, 1, 2), scenarios=tuple(SCENARIOS)),
    "eight cores": Configuration((2, 2, 1, 2), often=()),
    # Chips of one core, as TensorFlow sees v4, v5e and v6e.
    "one core": Configuration(
        (1, 1, 1, 1), scenarios=(*SHORT, "branches_and_loops"), often=("plain",)
    ),
    "four chips of one core": Configuration(
        (2, 2, 1, 1), scenarios=("plain", "keras_model"), often=()
    ),
    "two cores a replica": Configuration(
        (2, 2, 1, 2),
        cores_per_replica=2,
        scenarios=("plain", "host_call", "keras_model", "split_input"),
    ),
    "eight cores a replica": Configuration(
        (2, 2, 1, 2), cores_per_replica=8, scenarios=("plain",), often=()
    ),
    "two chips a replica": Configuration(
        (2, 2, 1, 1), cores_per_replica=2, scenarios=("plain", "keras_model"), often=()
    ),
    "two hosts": Configuration(
        (1, 2, 1, 2),
        hosts=2,
        scenarios=(
            *SHORT,
            "training_per_host_v1",
            "training_per_shard",
            "broadcast",
            "sliced_evaluation",
            "tensors_from_input_fn",
            "hooks_of_tensorflow",
            "refused_on_a_pod",
        ),
        often=("plain", "keras_model", "training_per_host_v1", "refused_on_a_pod"),
    ),
    "two hosts elsewhere": Configuration(
        (1, 2, 1, 2), hosts=2, remote=True, scenarios=("plain", "host_call"), often=()
    ),
    "replicas over two hosts each": Configuration(
        (1, 4, 1, 1), hosts=4, cores_per_replica=2, scenarios=("only_training",), often=()
    ),
    "a replica over two hosts": Configuration(
        (1, 2, 1, 2), hosts=2, cores_per_replica=4, scenarios=("plain",)
    ),
}

_ON_FEWER = tuple(name for name in SCENARIOS if name not in ON_FOUR)
ON_JAX = {
    "one device": Configuration((1, 1, 1, 1), scenarios=_ON_FEWER, often=()),
    "two devices": Configuration((1, 1, 1, 2), scenarios=_ON_FEWER, often=()),
    # The last of all scenarios is the last of a process.
    **{name: CONFIGURATIONS[name] for name in ("eight cores a replica", "two cores a replica")},
    "four cores": dataclasses.replace(CONFIGURATIONS["four cores"], often=SHORT),
}
"""What as many of JAX's devices run as the TPU has cores, all in one process."""
