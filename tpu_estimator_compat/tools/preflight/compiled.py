"""The results of compiling a step for absent devices."""

from __future__ import annotations

import dataclasses
import enum

from tpu_estimator_compat.tools.preflight.report import Memory


class Error(enum.StrEnum):
    """The reason why the step cannot run; `NONE`, which is falsy, if it can."""

    NONE = ""
    TOO_LARGE = "too large"
    """The program does not fit into the memory of a device."""
    REFUSED = "refused"
    """The compiler says that it cannot compile the program."""
    NOT_EXPRESSED = "not expressed"
    """The program cannot be written as StableHLO for the compiler; nothing is known of it."""
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
    """One buffer in a device's memory, as the compiler placed it.

    Attributes:
      size: bytes on the device, padding included.
      shape: the compiler's notation, such as "f32[32,128,768]{2,1,0:T(8,128)}".
      op_name: the operation that makes it, as the module's locations name it, or the variable
        whose value it holds; empty where the compiler named none.
      place: kind of buffer; an argument that an output overwrites is an ARGUMENT.
      feed: index of the input tensor that the buffer holds, for all steps; None if it holds none.
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
      message: the compiler's error, or a remedy; empty if compiled.
      memory: memory of one device by kind; None if not compiled.
      flops: floating-point operations of one device in one step; None if not compiled. The
        compiler counts the body of a loop once, and what precedes the loop in full.
      bytes_accessed: bytes that one device reads and writes in memory, counted as FLOPs are.
      collectives: number of exchanges between replicas in the compiled program, by kind.
      convolutions: number of calls of cuDNN, whose workspaces `memory` does not include.
      buffers: all arguments and outputs, and the temporaries alive at their peak; the largest
        first. Empty where the compiler gave up before it placed buffers, as it mostly does if they
        do not fit.
      needed: bytes that a too large program needs; for a TPU to the three or four digits that the
        compiler prints. None if the program is not too large.
      available: bytes of a device that a program can use; digits and None as for `needed`.
      compiler: the compiler's name and version; empty if it gave no answer.
      seconds: wall time of the compilation, even if the result is from the cache.
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
