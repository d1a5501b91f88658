"""The result of a preflight: per topology the findings, the depth and the verdict."""

from __future__ import annotations

import dataclasses
import enum

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.tools.reports import document
from tpu_estimator_compat.tools.reports.document import Tone


class Depth(enum.IntEnum):
    """The depth of a preflight; each includes the lower ones."""

    SCAN = 1
    """Scan the captured graph: TensorFlow only, under a second."""
    LOWER = 2
    """Lower the step to StableHLO with XLA on the CPU: TensorFlow only."""
    COMPILE = 3
    """Compile the step with the devices' own compiler: needs an extra, such as `preflight`."""


class Verdict(document.Verdict):
    FITS = "compiles and fits", 0, Tone.GOOD
    CLOSE = "close: may not fit", 2, Tone.WARN
    UNKNOWN = "could not tell", 2, Tone.WARN
    FAILS = "fails", 1, Tone.BAD


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes of one device's memory in a dispatch, as the compiler counts them.

    Attributes:
      arguments: variables, and the input of a replica for all steps.
      outputs: the results of every step, and new values of variables.
      aliased: the outputs that are written over arguments.
      temporaries: values that live only within the step, such as activations and gradients.
      code: the compiled program.
    """

    arguments: int
    outputs: int
    aliased: int
    temporaries: int
    code: int

    @property
    def total(self) -> int:
        return self.arguments + self.outputs - self.aliased + self.temporaries + self.code


@dataclasses.dataclass(frozen=True)
class Layer:
    """Memory of one layer, a name scope of the model's variables, in bytes of one replica.

    Attributes:
      slots: variables that are not trainable, such as optimizer slots and moving averages.
      temporaries: those of its ops that are alive at the memory's peak, in bytes of one device; 0
        where the compiler named none.
    """

    name: str
    variables: int
    slots: int
    temporaries: int = 0


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A large buffer, as `RawBuffer`, with the operation in the user's graph and its line."""

    size: int
    unpadded: int
    shape: str
    op: str = ""
    source: SourceLine | None = None


@dataclasses.dataclass(frozen=True)
class Collectives:
    """The exchanges between replicas in one step of the model.

    Attributes:
      all_reduces: number of sums over replicas in the captured step.
      all_reduce_bytes: bytes that one replica contributes to these sums.
      others: number of other exchanges.
      compiled: number by kind after compilation, which merges them; empty if not compiled. It
        includes the sum of the loss, which the loop reads to stop when the loss is NaN.
    """

    all_reduces: int
    all_reduce_bytes: int
    others: int = 0
    compiled: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class LargestBatch:
    """The result of a search for the largest batch of one replica; `tried` has batches in order.

    Attributes:
      fits: the largest batch that compiled and fit; 0 where none did.
      fails: the smallest batch that did not fit; None where none was found.
    """

    fits: int
    fails: int | None
    tried: tuple[int, ...]


@dataclasses.dataclass
class Report:
    """The results of one mode of a model on one topology.

    Attributes:
      topology: a name such as "v5e:2x2" or "h100:8".
      batch_size: examples of one replica's step; None if unknown.
      hbm: bytes of one device that a program can use; for a GPU, the part that JAX takes.
      asked: the requested depth.
      reached: the depth that was reached; None where the graph could not be captured.
      findings: certain and possible faults.
      parameters: number of trainable parameters.
      input_bytes: bytes of one replica's input.
      layers: memory by layer, in the order of the graph.
      memory: memory by kind; None if not compiled. For a step too large for a TPU, code is 0.
      buffers: the largest buffers, or variables if they alone are too large; empty if it fits.
      dispatch_steps: the most steps of one dispatch of the JAX runtime; None if not compiled.
      flops, bytes_accessed: as in `Compiled`.
      largest_batch: None where there was no search.
      seconds: wall time by part: "capture", "scan", "lower", "compile".
      unknown: the reason why the step was not compiled; empty if it was.
      kind, memory_share, fits_below, peak_flops: as in `Target`.
    """

    topology: str
    mode: str
    devices: int
    replicas: int
    hosts: int
    batch_size: int | None
    hbm: int
    asked: Depth
    reached: Depth | None = None
    findings: list[Finding] = dataclasses.field(default_factory=list)
    ops: int = 0
    parameters: int = 0
    variable_bytes: int = 0
    input_bytes: int = 0
    collectives: Collectives | None = None
    layers: list[Layer] = dataclasses.field(default_factory=list)
    memory: Memory | None = None
    buffers: list[Buffer] = dataclasses.field(default_factory=list)
    dispatch_steps: int | None = None
    flops: float | None = None
    bytes_accessed: float | None = None
    largest_batch: LargestBatch | None = None
    compiler: str = ""
    cached: bool = False
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    unknown: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)
    kind: str = "TPU"
    memory_share: float | None = None
    fits_below: int | None = None
    peak_flops: float | None = None

    @property
    def verdict(self) -> Verdict:
        """FAILS with a certain finding; FITS only where the step was compiled."""
        if any(f.severity is Severity.FAILS for f in self.findings):
            return Verdict.FAILS
        if self.unknown or self.memory is None:
            return Verdict.UNKNOWN
        if self.fits_below is not None and self.memory.total > self.fits_below:
            return Verdict.CLOSE
        return Verdict.FITS

    @property
    def verdict_in_words(self) -> str:
        """The verdict, in other words where this package judges the memory, not the compiler."""
        stops = [f for f in self.findings if f.severity is Severity.FAILS]
        if self.fits_below is not None:
            if stops and all(f.kind is Kind.MEMORY for f in stops):
                return "too large"
            if self.verdict is Verdict.FITS:
                return "fits with room"
        return str(self.verdict.value)

    @property
    def least_seconds(self) -> float | None:
        """Lower bound of a step's time: FLOPs divided by peak FLOP/s; None if either is unknown."""
        return self.flops / self.peak_flops if self.flops and self.peak_flops else None

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte accessed; None if not compiled."""
        if not self.flops or not self.bytes_accessed:
            return None
        return self.flops / self.bytes_accessed
