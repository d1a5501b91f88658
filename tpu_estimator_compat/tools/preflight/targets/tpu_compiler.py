"""The TPU's own compiler, libtpu: its options, and the format of its answers."""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

from tpu_estimator_compat.tools.preflight.targets.target import Backend, Dump

LIBTPU = "0.0.51"
"""The release of the TPU's compiler that the extra `preflight` installs."""

_SIZE = r"([\d.]+)([BKMGTP])"
_TOO_LARGE = re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)")
_TOO_LARGE_PLACED = re.compile(rf"Used {_SIZE} of {_SIZE} hbm\. Exceeded hbm capacity by {_SIZE}")


class TpuCompiler(Backend):
    packages = {"jax": "", "jaxlib": "", "libtpu": LIBTPU}
    extra = "preflight"
    dump = Dump(".after_optimizations", has_other_memories=True)
    # They describe a machine to libtpu, so that it opens no device. The last lets other processes
    # load libtpu at the same time.
    variables = {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_ACCELERATOR_TYPE": "v5litepod-4",
        "TPU_STDERR_LOG_LEVEL": "3",
        "TPU_MIN_LOG_LEVEL": "3",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }

    def name(self, answer: dict[str, Any]) -> str:
        return f"libtpu {LIBTPU}, {answer['compiler']}"

    def sizes(self, refusal: str) -> tuple[int, int] | None:
        if match := _TOO_LARGE_PLACED.search(refusal):
            available = _bytes(match[3], match[4])
            return available + _bytes(match[5], match[6]), available
        if match := _TOO_LARGE.search(refusal):
            return _bytes(match[1], match[2]), _bytes(match[3], match[4])
        return None

    def devices(self, described: dict[str, Any], directory: pathlib.Path) -> tuple[Any, ...]:
        from jax.experimental import topologies

        os.environ["TPU_LOG_DIR"] = str(directory)  # read when libtpu is loaded, below
        config = described["chip_config"]
        topology = topologies.get_topology_desc(
            platform="tpu",
            topology_name=described["topology"],
            **({"chip_config_name": config} if config else {}),
        )
        return tuple(topology.devices)

    def options(self) -> dict[str, Any]:
        return {}

    def cost(self, lowered: Any, executable: Any, cores: int) -> dict[str, float | None]:
        found = executable.cost_analysis()
        return {"flops": found.get("flops"), "bytes_accessed": found.get("bytes accessed")}


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * 1024.0 ** "BKMGTP".index(unit))
