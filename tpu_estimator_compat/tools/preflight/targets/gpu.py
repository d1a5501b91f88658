"""NVIDIA GPUs by name, such as "h100:8": their description for XLA's compiler, and their memory.

`gpus.csv` has a row for each card. Its memory is the size that the driver reports, which is less
than the nominal one. The sizes of T4, A10, L4 and L40S are from out-of-memory messages of programs;
the others, and the figures of the chips, are from the device descriptions in XLA's repository.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.resources
import math
import re
from typing import TYPE_CHECKING, Any, ClassVar

from tpu_estimator_compat.tools.preflight.targets.target import Target

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.compiled import Compiled

MEMORY_SHARE = 0.75
"""The share of a GPU's memory that JAX takes, unless XLA_PYTHON_CLIENT_MEM_FRACTION is set."""
WITH_ROOM = 0.85
"""The share of JAX's memory up to which a step fits with room; uncounted memory needs the rest."""

_OF_A_HOST = 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuTarget(Target):
    """NVIDIA GPUs of one kind, named such as "h100:8"; `card` is a row of `gpus.csv`."""

    card: dict[str, str]

    kind: ClassVar[str] = "GPU"
    needs_jax: ClassVar[bool] = True

    def described(self) -> dict[str, Any]:
        of_host = self.devices // self.hosts
        return {"card": self.card, "hosts": self.hosts, "devices_of_host": of_host}

    def judged(self, compiled: Compiled) -> Compiled:
        """Marks a step above `hbm` as too large: XLA's compiler for GPUs refuses no size."""
        from tpu_estimator_compat.tools.preflight.compiled import Error

        memory = compiled.memory
        if compiled.error is not Error.NONE or memory is None or memory.total <= self.hbm:
            return compiled
        return dataclasses.replace(
            compiled, error=Error.TOO_LARGE, needed=memory.total, available=self.hbm
        )


@functools.cache
def cards() -> dict[str, dict[str, str]]:
    file = importlib.resources.files(__package__) / "gpus.csv"
    return {row["name"]: row for row in csv.DictReader(file.read_text().splitlines())}


def parse(name: str, share: float = MEMORY_SHARE) -> GpuTarget:
    """The GPUs of a name such as "h100:8"; more than eight are on several hosts of eight.

    ValueError for an unknown card, a number out of range, or a `share` outside of (0, 1].
    """
    card, _, count = name.strip().lower().partition(":")
    if card not in cards():
        raise ValueError(f"Unknown GPU in topology {name!r}. Expected one of {', '.join(cards())}.")
    if not re.fullmatch(r"[1-9]\d*", count) or (int(count) > _OF_A_HOST and int(count) % 8):
        raise ValueError(
            f"Topology {name!r} has no valid number of GPUs. Expected 1 to {_OF_A_HOST}, or a "
            f"multiple of {_OF_A_HOST} for several hosts, such as '{card}:{_OF_A_HOST}'."
        )
    if not 0 < share <= 1:
        raise ValueError(f"The share of memory must be above 0 and at most 1, got {share!r}.")
    row, devices = cards()[card], int(count)
    hbm = math.floor(int(row["memory in bytes"]) * share)
    return GpuTarget(
        name=f"{card}:{devices}",
        devices=devices,
        hosts=math.ceil(devices / _OF_A_HOST),
        hbm=hbm,
        fits_below=math.floor(hbm * WITH_ROOM),
        memory_share=share,
        peak_flops=float(row["peak in TFLOP/s"]) * 1e12,  # of products of 16-bit floats
        card=row,
    )
