"""The target of a compilation, and the interface of a compiler for it.

Each kind of device has a subclass of `Target` and one of `Backend`, in files of their own; only
these know their compiler. The compiler's process imports both without TensorFlow.
"""

from __future__ import annotations

import abc
import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.preflight.compiled import Compiled


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
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
    """Key of the target's `Backend` in `BACKENDS`, and the word for one device."""
    needs_jax: ClassVar[bool] = False
    """Whether only `runtime="jax"` compiles steps for these devices."""

    def described(self) -> dict[str, Any]:
        """The arguments of `Backend.devices`, as JSON values."""
        raise NotImplementedError

    def judged(self, compiled: Compiled) -> Compiled:
        """The compiler's result, with a verdict on its memory where the compiler gives none."""
        return compiled


@dataclasses.dataclass(frozen=True)
class Dump:
    """The names and the format of the files that a compiler writes.

    Attributes:
      stage: the common part of the names of the compiled program's files.
      has_other_memories: whether colors of allocations are memories on the chip.
    """

    stage: str
    has_other_memories: bool


class Backend(abc.ABC):
    """A compiler for absent devices.

    Attributes:
      packages: required packages with their versions; an empty string for any version.
      extra: the extra of this package that installs them.
      variables: environment variables of the compiler's process.
    """

    packages: ClassVar[dict[str, str]]
    extra: ClassVar[str]
    dump: ClassVar[Dump]
    variables: ClassVar[dict[str, str]]

    @abc.abstractmethod
    def name(self, answer: dict[str, Any]) -> str:
        """The compiler's name and version, then after a comma further information."""

    @abc.abstractmethod
    def sizes(self, refusal: str) -> tuple[int, int] | None:
        """Bytes needed and available, if a message refuses a program for its size."""

    @abc.abstractmethod
    def devices(self, described: dict[str, Any], directory: pathlib.Path) -> tuple[Any, ...]:
        """JAX's descriptions of the devices; `described` is the result of `Target.described`."""

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """XLA options of each compilation."""

    @abc.abstractmethod
    def cost(self, lowered: Any, executable: Any, cores: int) -> dict[str, float | None]:
        """The counts "flops" and "bytes_accessed" of one device; None where not known."""
