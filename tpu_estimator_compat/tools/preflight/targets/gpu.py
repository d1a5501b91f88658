"""NVIDIA GPUs by name, such as "h100:8", and XLA's compiler for them.

The compiler takes a description of a card in place of the card. It needs neither a driver nor
cuDNN, cuBLAS or NCCL. Nothing can be timed without a device, so nothing is tuned: the libraries may
choose other algorithms on the card, with other workspaces.

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
import pathlib
import re
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.tools.preflight.targets.target import Target

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.compiled import Compiled

MEMORY_SHARE = 0.75
"""The share of a GPU's memory that JAX takes, unless XLA_PYTHON_CLIENT_MEM_FRACTION is set."""
WITH_ROOM = 0.85
"""The share of JAX's memory up to which a step fits with room; uncounted memory needs the rest."""

JAX = "0.10.2"
"""The release of JAX and of its plugin that the extra `preflight-gpu` installs."""

_OF_A_HOST = 8

# Fields as in XLA's message GpuTargetConfigProto. Limits that all cards share stand here. XLA
# decides by the version of cuDNN which convolutions call it; the library is not loaded.
_TARGET = """
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  threads_per_core_limit: {card[threads]}
  shared_memory_per_block: 49152
  shared_memory_per_core: {card[shared memory]}
  shared_memory_per_block_optin: {card[shared memory of a block]}
  core_count: {card[multiprocessors]}
  fpus_per_core: {card[lanes]}
  clock_rate_ghz: {card[clock in GHz]}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {card[L2 cache]}
  device_memory_size: {card[memory in bytes]}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  cuda_compute_capability {{ major: {major} minor: {minor} }}
}}
platform_name: "CUDA"
device_description_str: "{card[device]}"
dnn_version_info {{ major: 9 minor: 10 }}
runtime_version {{ major: 12 minor: 9 }}
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuTarget(Target):
    """NVIDIA GPUs of one kind, named such as "h100:8"; `card` is a row of `gpus.csv`."""

    card: dict[str, str]

    kind = "GPU"
    needs_jax = True
    compiler = f"XLA of jaxlib {JAX}"
    packages = {
        "jax": JAX,
        "jaxlib": JAX,
        "jax-cuda12-pjrt": JAX,
        "jax-cuda12-plugin": JAX,
        "nvidia-cuda-nvcc-cu12": "12.9.86",
    }
    extra = "preflight-gpu"
    options = {"xla_gpu_autotune_level": 0}
    dumped = "gpu_after_optimizations"
    has_other_memories = False

    def judged(self, compiled: Compiled) -> Compiled:
        """Marks a step above `hbm` as too large: XLA's compiler for GPUs refuses no size."""
        from tpu_estimator_compat.tools.preflight.compiled import Error

        memory = compiled.memory
        if compiled.error is not Error.NONE or memory is None or memory.total <= self.hbm:
            return compiled
        return dataclasses.replace(
            compiled, error=Error.TOO_LARGE, needed=memory.total, available=self.hbm
        )

    def jax_devices(self, directory: pathlib.Path) -> tuple[Any, ...]:
        from jax.experimental import topologies

        major, _, minor = self.card["compute capability"].partition(".")
        target = _TARGET.format(
            card=self.card,
            major=major,
            minor=minor,
            bandwidth=round(float(self.card["bandwidth in GB/s"]) * 1e9),
        )
        # Partitions, hosts, and GPUs of a host.
        shape = f"1x{self.hosts}x{self.devices // self.hosts}"
        topology = topologies.get_topology_desc(
            topology_name="", platform="cuda", topology=shape, target_config=target
        )
        return tuple(topology.devices)

    def cost(self, lowered: Any, executable: Any, cores: int) -> dict[str, float | None]:
        """Counts FLOPs before fusion: in the compiled program, library calls count as 0 FLOPs.

        The program before fusion is a whole replica's, so its FLOPs are divided by `cores`. Bytes
        are those of the compiled program, without library calls. The CPU's client counts both:
        without a GPU, the plugin counts nothing.
        """
        import jax
        from jaxlib import _jax

        client = jax.devices("cpu")[0].client
        given = lowered.compiler_ir("hlo").get_hlo_module()
        [compiled] = executable.runtime_executable().hlo_modules()
        before = _jax.hlo_module_cost_analysis(client, given)
        after = _jax.hlo_module_cost_analysis(client, compiled)
        return {"flops": before["flops"] / cores, "bytes_accessed": after.get("bytes accessed")}


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
