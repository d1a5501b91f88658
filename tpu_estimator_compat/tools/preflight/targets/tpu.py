"""TPU topologies by name, such as "v5e:2x2", and the TPU's own compiler, libtpu.

The figures are those of libtpu 0.0.51's compiler; a test compares them. A cloud's figures may
differ: the compiler counts two hosts for "v5e:2x4", which Google Cloud also has on one.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import re
from typing import Any

from tpu_estimator_compat.tools.preflight.targets.target import Target

_MIB = 2**20

LIBTPU = "0.0.51"
"""The release of the TPU's compiler that the extra `preflight` installs."""

_SIZE = r"([\d.]+)([BKMGTP])"
_TOO_LARGE = re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)")
_TOO_LARGE_PLACED = re.compile(rf"Used {_SIZE} of {_SIZE} hbm\. Exceeded hbm capacity by {_SIZE}")


@dataclasses.dataclass(frozen=True)
class _Generation:
    """One TPU generation.

    Attributes:
      dimensions: number of dimensions in which chips are arranged.
      hbm: bytes of one device that a program can use: the memory less the compiler's reserve.
      accelerator_type: prefix of Google Cloud's names of slices.
      counted_per_chip: 1 if the number in those names counts chips, 2 if it counts TensorCores.
      chip_config: libtpu's name of a chip's configuration; empty for the default.
    """

    dimensions: int
    devices_per_chip: int
    hbm: int
    accelerator_type: str
    counted_per_chip: int
    chip_config: str = ""


# From the compiler of libtpu 0.0.51. `hbm` is the size, in whole MiB, up to which it compiles a
# program that only updates its argument in place.
_GENERATIONS = {
    "v2": _Generation(2, 2, 7662 * _MIB, "v2", 2),
    "v3": _Generation(2, 2, 15854 * _MIB, "v3", 2),
    # "megacore", the setting of TensorFlow and JAX, makes both TensorCores of a chip one device.
    # libtpu's default is two devices.
    "v4": _Generation(3, 1, 31485 * _MIB, "v4", 2, "megacore"),
    "v5e": _Generation(2, 1, 16126 * _MIB, "v5litepod", 1),
    "v5p": _Generation(3, 1, 98025 * _MIB, "v5p", 2),
    "v6e": _Generation(2, 1, 31992 * _MIB, "v6e", 1),
    "tpu7x": _Generation(3, 2, 97012 * _MIB, "tpu7x", 2),
}

# A host has 2x2 chips, or fewer in a dimension that is one chip long.
_HOST = (2, 2, 1)

_EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x4 or tpu7x:2x2x1"

# Common names of generations that libtpu does not know, or uses for something else.
_OTHER_NAMES = {"v5litepod": "v5e", "v5lite": "v5e", "v7x": "tpu7x", "v7": "tpu7x", "tpu7": "tpu7x"}

# Google Cloud names these slices by a number only. The key is the number of dimensions. Larger
# slices in three dimensions come in several arrangements.
_ARRANGEMENTS = {
    2: ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32"),
    3: ("1x1x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuTopology(Target):
    """An arrangement of TPU chips, named in libtpu's spelling, such as "v5e:2x2"."""

    chip_config: str = ""

    kind = "TPU"
    compiler = f"libtpu {LIBTPU}"
    packages = {"jax": "", "jaxlib": "", "libtpu": LIBTPU}
    extra = "preflight"
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
    dumped = ".after_optimizations"
    has_other_memories = True

    def sizes(self, refusal: str) -> tuple[int, int] | None:
        if match := _TOO_LARGE_PLACED.search(refusal):
            available = _bytes(match[3], match[4])
            return available + _bytes(match[5], match[6]), available
        if match := _TOO_LARGE.search(refusal):
            return _bytes(match[1], match[2]), _bytes(match[3], match[4])
        return None

    def jax_devices(self, directory: pathlib.Path) -> tuple[Any, ...]:
        from jax.experimental import topologies

        os.environ["TPU_LOG_DIR"] = str(directory)  # read when libtpu is loaded, below
        config = {"chip_config_name": self.chip_config} if self.chip_config else {}
        topology = topologies.get_topology_desc(platform="tpu", topology_name=self.name, **config)
        return tuple(topology.devices)

    def cost(self, lowered: Any, executable: Any, cores: int) -> dict[str, float | None]:
        found = executable.cost_analysis()
        return {"flops": found.get("flops"), "bytes_accessed": found.get("bytes accessed")}


def _bytes(number: str, unit: str) -> int:
    return round(float(number) * 1024.0 ** "BKMGTP".index(unit))


class UnknownGenerationError(ValueError):
    """A name does not start with a TPU generation."""


def parse(name: str) -> TpuTopology:
    """The topology of a name: generation and chips in each dimension, such as "v5e:2x2".

    Raises UnknownGenerationError, or ValueError for another number of dimensions, for chips that
    are not whole hosts, and for another spelling, such as Google Cloud's accelerator types. The
    compiler refuses arrangements that the generation does not have.
    """
    stripped = name.strip().lower()
    _refuse_accelerator_type(name, stripped)
    generation, _, arrangement = stripped.partition(":")
    if generation not in _GENERATIONS:
        words = f"Unknown TPU generation in topology {name!r}{_instead(generation)}."
        raise UnknownGenerationError(words)
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", arrangement):
        raise ValueError(
            f"Topology {name!r} does not say how the chips are arranged. Expected the generation, "
            f"a colon and the number of chips in each dimension, such as {_EXAMPLES}."
        )
    shape = tuple(int(size) for size in arrangement.split("x"))
    _check_shape(name, generation, shape)
    facts = _GENERATIONS[generation]
    return TpuTopology(
        name=f"{generation}:{arrangement}",
        devices=math.prod(shape) * facts.devices_per_chip,
        hosts=math.prod(size // min(size, host) for size, host in zip(shape, _HOST, strict=False)),
        hbm=facts.hbm,
        chip_config=facts.chip_config,
    )


def _instead(generation: str) -> str:
    if generation in _OTHER_NAMES:
        ours = _OTHER_NAMES[generation]
        return f"; it is called {ours!r} here. Expected a name such as {_EXAMPLES}"
    return f". Expected one of {', '.join(_GENERATIONS)}, as in {_EXAMPLES}"


def _check_shape(name: str, generation: str, shape: tuple[int, ...]) -> None:
    dimensions = _GENERATIONS[generation].dimensions
    if len(shape) != dimensions:
        example = {2: "2x2", 3: "2x2x1"}[dimensions]
        raise ValueError(
            f"Topology {name!r} has {len(shape)} dimension(s). Chips of {generation} are arranged "
            f"in {dimensions}: expected a name such as '{generation}:{example}'."
        )
    for size, host in zip(shape, _HOST, strict=False):
        if size % min(size, host):
            bounds = "x".join(str(min(s, h)) for s, h in zip(shape, _HOST, strict=False))
            raise ValueError(
                f"Topology {name!r} cannot be made of whole hosts: a host has {bounds} chips, and "
                f"{size} is not divisible by {host}. Expected even sizes, or 1, in the first two "
                f"dimensions, such as {_EXAMPLES}."
            )


def _refuse_accelerator_type(name: str, stripped: str) -> None:
    for generation, facts in _GENERATIONS.items():
        match = re.fullmatch(rf"(?:{facts.accelerator_type}|{generation})-(\d+)", stripped)
        if match is None:
            continue
        count = int(match[1])
        chips, rest = divmod(count, facts.counted_per_chip)
        counted = "chips" if facts.counted_per_chip == 1 else "TensorCores, two on a chip"
        fitting = [
            f"{generation}:{arrangement}"
            for arrangement in _ARRANGEMENTS[facts.dimensions]
            if math.prod(int(size) for size in arrangement.split("x")) == chips and not rest
        ]
        advice = (
            f"Write {fitting[0]!r} ({chips} chip(s))."
            if fitting
            else f"Write how the chips are arranged, such as {_EXAMPLES}."
        )
        raise ValueError(
            f"{name!r} is an accelerator type of Google Cloud, not a topology: its {count} counts "
            f"{counted}, and does not say how they are arranged. {advice}"
        )
