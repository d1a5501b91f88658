"""XLA's compiler for NVIDIA GPUs, which takes a description of a card in place of the card.

It needs neither a driver nor cuDNN, cuBLAS or NCCL. Nothing can be timed without a device, so
nothing is tuned: the libraries may choose other algorithms on the card, with other workspaces.
"""

from __future__ import annotations

import pathlib
from typing import Any, ClassVar

from tpu_estimator_compat.tools.preflight.targets.target import Backend, Dump

JAX = "0.10.2"
"""The release of JAX and of its plugin that the extra `preflight-gpu` installs."""

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


class GpuCompiler(Backend):
    packages = {
        "jax": JAX,
        "jaxlib": JAX,
        "jax-cuda12-pjrt": JAX,
        "jax-cuda12-plugin": JAX,
        "nvidia-cuda-nvcc-cu12": "12.9.86",
    }
    extra = "preflight-gpu"
    dump = Dump("gpu_after_optimizations", has_other_memories=False)
    variables: ClassVar[dict[str, str]] = {}

    def name(self, answer: dict[str, Any]) -> str:
        return f"XLA of jaxlib {JAX}, {answer['compiler']}"

    def sizes(self, refusal: str) -> tuple[int, int] | None:
        return None

    def devices(self, described: dict[str, Any], directory: pathlib.Path) -> tuple[Any, ...]:
        from jax.experimental import topologies

        card = described["card"]
        major, _, minor = card["compute capability"].partition(".")
        target = _TARGET.format(
            card=card,
            major=major,
            minor=minor,
            bandwidth=round(float(card["bandwidth in GB/s"]) * 1e9),
        )
        # Partitions, hosts, and GPUs of a host.
        shape = f"1x{described['hosts']}x{described['devices_of_host']}"
        topology = topologies.get_topology_desc(
            topology_name="", platform="cuda", topology=shape, target_config=target
        )
        return tuple(topology.devices)

    def options(self) -> dict[str, Any]:
        return {"xla_gpu_autotune_level": 0}

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
