"""The results of compiling a step for devices that are not there."""

from __future__ import annotations

import dataclasses
import enum

from tpu_estimator_compat.tools.preflight.report import Memory


class Error(enum.StrEnum):
    """The reason why there is no executable; empty, which is false, where there is one."""

    NONE = ""
    TOO_LARGE = "too large"
    """The program does not fit into the memory of a device."""
    REFUSED = "refused"
    """The compiler says that it cannot compile the program."""
    NOT_EXPRESSED = "not expressed"
    """The program is no StableHLO, which the compiler reads; nothing is known of it."""
    CRASHED = "crashed"
    """The compiler's process ended without an answer; nothing is known of the program."""
    TIMED_OUT = "timed out"
    """The compiler took too long; nothing is known of the program."""
    MISSING = "missing"
    """The compiler is not installed in the required version."""


class Place(enum.StrEnum):
    ARGUMENT = "argument"
    OUTPUT = "output"
    TEMPORARY = "temporary"


@dataclasses.dataclass(frozen=True)
class RawBuffer:
    """One buffer in a device's memory, as the compiler has placed it.

    Attributes:
      size: bytes on the device, padding included.
      unpadded: bytes without padding.
      shape: the compiler's notation, such as "f32[32,128,768]{2,1,0:T(8,128)}".
      op_name: the operation that makes it, as the module's locations name it, or the variable
        whose value it holds; empty where the compiler named none.
      place: an argument that an output replaces is an ARGUMENT.
      feed: number of the step's input whose values, of all steps, it holds; None for other buffers.
    """

    size: int
    unpadded: int
    shape: str
    op_name: str = ""
    place: Place = Place.TEMPORARY
    feed: int | None = None


@dataclasses.dataclass(frozen=True)
class Compiled:
    """The compiler's result for the steps of a dispatch on some devices.

    Attributes:
      message: the compiler's words, or what to do; empty if it was compiled.
      memory: memory of one device by kind; None if not compiled.
      flops: floating-point operations of one replica in one step; None if not compiled. The
        compiler counts the body of a loop once, and what precedes the loop in full.
      bytes_accessed: bytes that one replica reads and writes in memory, counted likewise.
      collectives: number of exchanges between replicas in the compiled program, by kind.
      convolutions: number of calls of cuDNN, whose workspaces `memory` does not have.
      buffers: all arguments, outputs, and the temporaries alive when these need most memory; the
        largest first. Empty where the compiler gave up before it placed buffers, as it mostly does
        if they do not fit.
      needed: bytes that a program needs that is too large, to the three or four digits that the
        compiler prints; None otherwise.
      available: bytes of a device that a program can use, likewise.
      compiler: the compiler's name and version; empty if it gave no answer.
      seconds: wall time of the compilation, also of a cached one.
      cached: whether the answer is that of an earlier compilation.
    """

    error: Error = Error.NONE
    message: str = ""
    memory: Memory | None = None
    flops: float | None = None
    bytes_accessed: float | None = None
    collectives: dict[str, int] = dataclasses.field(default_factory=dict)
    convolutions: int = 0
    buffers: tuple[RawBuffer, ...] = ()
    needed: int | None = None
    available: int | None = None
    compiler: str = ""
    seconds: float = 0.0
    cached: bool = False
