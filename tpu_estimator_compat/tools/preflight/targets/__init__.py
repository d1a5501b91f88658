"""Devices to compile for, by name, and their compilers; the devices need not be present."""

from __future__ import annotations

from tpu_estimator_compat.tools.preflight.targets import gpu, tpu
from tpu_estimator_compat.tools.preflight.targets.target import Target


def parse(name: str, memory_share: float = gpu.MEMORY_SHARE) -> Target:
    """The devices of a name, a TPU topology such as "v5e:2x2", or GPUs such as "h100:8".

    ValueError for unknown devices, or a `memory_share` of GPUs outside of (0, 1].
    """
    if name.strip().lower().partition(":")[0] in gpu.cards():
        return gpu.parse(name, memory_share)
    try:
        return tpu.parse(name)
    except tpu.UnknownGenerationError as error:
        known = ", ".join(gpu.cards())
        raise ValueError(f"{error} GPUs are named such as h100:8: {known}.") from None
