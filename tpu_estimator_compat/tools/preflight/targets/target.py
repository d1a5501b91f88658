"""Devices to compile for, and their compiler.

Each kind of device has a subclass of `Target` in a file of its own; only that file knows the
compiler. The compiler's process imports it without TensorFlow.
"""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.compiled import Compiled


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target(abc.ABC):
    """Devices to compile for; they need not be present.

    Attributes:
      name: a name such as "v5e:2x2" or "h100:8".
      devices: number of devices that a program sees.
      hbm: bytes of one device that a program can use.
      fits_below: bytes up to which a step certainly fits; None where the compiler decides itself.
      memory_share: `hbm` as a share of a device's memory; None where the compiler sets `hbm`.
      peak_flops: a device's peak FLOP/s, as its maker publishes them; None where not known.
    """

    name: str
    devices: int
    hosts: int
    hbm: int
    fits_below: int | None = None
    memory_share: float | None = None
    peak_flops: float | None = None

    kind: ClassVar[str]
    """The word for one device."""
    needs_jax: ClassVar[bool] = False
    """Whether only `runtime="jax"` compiles steps for these devices."""
    compiler: ClassVar[str]
    """The compiler's name and version."""
    packages: ClassVar[dict[str, str]]
    """The compiler's packages with their versions; an empty string for any version."""
    extra: ClassVar[str]
    """The extra of this package that installs them."""
    variables: ClassVar[dict[str, str]] = {}
    """Environment variables of the compiler's process."""
    options: ClassVar[dict[str, Any]] = {}
    """XLA options of each compilation."""
    dumped: ClassVar[str]
    """The common part of the names of files that the compiler writes about its program."""
    has_other_memories: ClassVar[bool]
    """Whether colors of allocations in these files are memories on the chip."""

    def judged(self, compiled: Compiled) -> Compiled:
        """The compiler's result, with a verdict on its memory where the compiler gives none."""
        return compiled

    def sizes(self, refusal: str) -> tuple[int, int] | None:
        """Bytes needed and available, if a message refuses a program for its size."""
        return None

    @abc.abstractmethod
    def jax_devices(self, directory: pathlib.Path) -> tuple[Any, ...]:
        """JAX's descriptions of the devices; the compiler may write logs to `directory`."""

    @abc.abstractmethod
    def cost(self, lowered: Any, executable: Any, cores: int) -> dict[str, float | None]:
        """The counts "flops" and "bytes_accessed" of one device; None where not known."""
