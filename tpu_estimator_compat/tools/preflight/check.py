"""Checks a mode on topologies, to the requested depth, and makes a report of each."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight import compiler, sizes, targets
from tpu_estimator_compat.tools.preflight.compiled import Compiled, Error, Place
from tpu_estimator_compat.tools.preflight.planned_mode import (
    NoStepError,
    PlannedMode,
    PlannedTopology,
)
from tpu_estimator_compat.tools.preflight.programs import Program, Progress, program_of, stops
from tpu_estimator_compat.tools.preflight.report import (
    Depth,
    LargestBatch,
    Memory,
    Report,
    Verdict,
)
from tpu_estimator_compat.tools.preflight.targets.target import Target
from tpu_estimator_compat.tools.reports import numbers

_NEAR = 16
"""A search ends at an interval of 1/16 of its lower end: each try is a compilation."""
_MOST = 2**20
"""The largest batch that is tried."""


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of a check.

    Attributes:
      time_limit: seconds that one compilation may take.
      progress: called about once a second with the current activity and its seconds.
    """

    depth: Depth
    largest_batch: bool
    time_limit: float
    progress: Progress
    memory_share: float


def check(planned: PlannedMode, names: Sequence[str], options: Options) -> list[Report]:
    """Checks a mode on each topology; ValueError for unknown names."""
    environment.require_xla_for_cpu("preflight")
    found = [targets.parse(name, options.memory_share) for name in names]

    @functools.cache
    def program(topology: PlannedTopology, share: int | None = None) -> Program:
        return program_of(planned, topology, share, options.depth, options.progress)

    with eager.eager_mode():
        return [_Check(planned, target, program, options).report() for target in found]


@dataclasses.dataclass(frozen=True)
class _Check:
    planned: PlannedMode
    target: Target
    program: Callable[..., Program]
    options: Options

    @functools.cached_property
    def topology(self) -> PlannedTopology:
        return PlannedTopology.of(self.target, self.planned.replicas(self.target.devices))

    def report(self) -> Report:
        target = self.target
        report = Report(
            target.name,
            self.planned.mode,
            target.devices,
            self.topology.num_replicas,
            self.topology.num_hosts,
            None,
            target.hbm,
            self.options.depth,
            notes=self.planned.remarks,
            kind=target.kind,
            memory_share=target.memory_share,
            fits_below=target.fits_below,
            peak_flops=target.peak_flops,
        )
        try:
            program = self.program(self.topology)
        except NoStepError as error:
            report.findings.append(error.finding)
            return report
        self._describe(report, program)
        if self.options.depth >= Depth.COMPILE:
            self._compile_into(report, program)
        if self.options.largest_batch:
            self._search_into(report)
        if report.verdict is Verdict.UNKNOWN and not report.unknown:
            report.unknown = f"Not compiled: the requested depth is {report.asked.name.lower()}."
        return report

    def _describe(self, report: Report, program: Program) -> None:
        step = program.step
        variables = sizes.variables(step)
        report.batch_size = self.planned.placed(self.topology, None)[1].model_batch_size
        report.reached = Depth.SCAN if program.dispatch is None else Depth.LOWER
        report.findings += program.findings
        report.seconds.update(program.seconds)
        report.ops = len(step.ops)
        report.parameters = sum(v.elements for v in variables if v.trainable)
        report.variable_bytes = sum(v.bytes for v in variables)
        report.input_bytes = sizes.input_bytes(step)
        report.collectives = sizes.collectives(step)
        report.layers = sizes.layers(variables)
        if note := sizes.note_on_host_variables(step):
            report.notes.append(note)
        exchanged = report.collectives.all_reduces or report.collectives.others
        if self.planned.mode == ModeKeys.TRAIN and report.replicas > 1 and not exchanged:
            report.findings.append(_APART)
        if too_large := self._too_large(report.variable_bytes + report.input_bytes):
            report.findings.append(too_large)
            report.buffers = sizes.Attribution(program.step).largest_variables()

    def _too_large(self, least: int) -> Finding | None:
        """A finding if `least` bytes, without padding and temporaries, exceed the memory."""
        cores = self.planned.cores_per_replica
        if least <= self.target.hbm * cores:
            return None
        whose = "a device" if cores == 1 else f"each of {cores} devices"
        return Finding(
            Severity.FAILS,
            Kind.MEMORY,
            f"Variables and input alone need {numbers.size(least)}, of "
            f"{numbers.size(self.target.hbm)} that {whose} of {self.target.name} has.",
            _ADVICE_ON_MEMORY,
        )

    def _compile_into(self, report: Report, program: Program) -> None:
        if any(map(stops, report.findings)):
            return
        if program.dispatch is None:
            report.unknown = "The step could not be lowered to StableHLO."
        else:
            compiled = self._compile(program.dispatch, f"Compiling for {self.target.name}")
            _put_into(report, compiled, program)

    def _compile(self, dispatch: Dispatch, what: str) -> Compiled:
        return compiler.compile(
            dispatch,
            self.target,
            self.topology.num_replicas,
            time_limit=self.options.time_limit,
            progress=lambda seconds: self.options.progress(what, seconds),
        )

    def _search_into(self, report: Report) -> None:
        """Adds the largest batch of one replica, or a note, if the depth asks for the search."""
        if not report.batch_size or self.options.depth < Depth.COMPILE:
            return
        if report.unknown or any(f.kind is not Kind.MEMORY and stops(f) for f in report.findings):
            report.notes.append("The largest batch was not searched for: see the findings above.")
            return
        report.largest_batch = search(lambda batch: self._fits(batch, report), report.batch_size)

    def _fits(self, batch: int, report: Report) -> bool | None:
        """Whether a batch of one replica fits; None, with a note, where that is unknown."""
        try:
            program = self.program(self.topology, batch)
        except NoStepError as error:
            report.notes.append(f"A batch of {batch} cannot be checked: {error.finding.message}")
            return None
        if all(t.shape.as_list()[:1] != [batch] for t in program.step.feeds):
            report.notes.append(
                f"A batch of {batch} cannot be checked: input_fn does not batch by "
                "params['batch_size']."
            )
            return None
        variables = sum(v.bytes for v in sizes.variables(program.step))
        if self._too_large(variables + sizes.input_bytes(program.step)):
            return False
        if program.dispatch is None:
            report.notes.append(f"A batch of {batch} cannot be checked: it is not lowered.")
            return None
        what = f"Compiling a batch of {batch} for {self.target.name}"
        compiled = self._compile(program.dispatch, what)
        if compiled.error is Error.NONE and compiled.memory:
            most = self.target.fits_below
            return most is None or compiled.memory.total <= most
        if compiled.error is Error.TOO_LARGE:
            return False
        report.notes.append(f"A batch of {batch} could not be checked: {compiled.message}")
        return None


def search(fits: Callable[[int], bool | None], start: int) -> LargestBatch:
    """Doubles or halves the batch until the limit lies between two sizes, then bisects.

    Batches between the result's `fits` and `fails` are not tried. If `fits()` returns None, for
    unknown, the search ends.
    """
    tried: list[int] = []
    low, high, batch = 0, None, start
    while batch:
        tried.append(batch)
        answer = fits(batch)
        if answer is None:
            break
        low, high = (batch, high) if answer else (low, batch)
        batch = _next(low, high)
    return LargestBatch(low, high, tuple(tried))


def _next(low: int, high: int | None) -> int:
    """The next batch to try; 0 where the interval is small enough."""
    if high is None:
        return low * 2 if low * 2 <= _MOST else 0
    if not low:
        return high // 2
    if high - low <= max(1, low // _NEAR):
        return 0
    return (low + high) // 2


_APART = Finding(
    Severity.MIGHT,
    Kind.CONFIGURATION,
    "The replicas exchange nothing: each trains a model of its own.",
    "wrap the optimizer in CrossShardOptimizer; scripts often do so only with --use_tpu=True",
)
_ADVICE_ON_MEMORY = (
    "take a smaller batch per replica, bfloat16, tf.recompute_grad, an optimizer with fewer slots, "
    "or devices with more memory"
)


def _put_into(report: Report, compiled: Compiled, program: Program) -> None:
    report.seconds["compile"] = compiled.seconds
    report.compiler = compiled.compiler.partition(",")[0]
    report.cached = compiled.cached
    whose = sizes.Attribution(program.step)
    if compiled.error not in (Error.NONE, Error.TOO_LARGE, Error.REFUSED):
        report.unknown = compiled.message
        if op := whose.operation_in(compiled.message):
            report.unknown += f" ({op.name}, made at {sources.of_operation(op)})"
        return
    report.reached = Depth.COMPILE
    report.dispatch_steps = None if program.dispatch is None else program.dispatch.most
    report.layers = whose.with_temporaries(report.layers, compiled.buffers)
    if compiled.error is Error.REFUSED:
        report.findings.append(_refusal(compiled, whose))
        return
    report.memory = compiled.memory or _memory_of(compiled)
    report.flops = compiled.flops
    report.bytes_accessed = compiled.bytes_accessed
    if report.collectives and compiled.memory:
        exchanged = dict(compiled.collectives)
        report.collectives = dataclasses.replace(report.collectives, compiled=exchanged)
    if compiled.error is Error.TOO_LARGE:
        report.findings.append(_too_large_for(compiled, report))
    if report.verdict is not Verdict.FITS:
        report.buffers = whose.largest(compiled.buffers)
    if compiled.convolutions:
        report.notes.append(
            f"{compiled.convolutions} convolutions call cuDNN, which is not loaded here: their "
            "workspaces are not counted, so the verdict is less certain."
        )


def _memory_of(compiled: Compiled) -> Memory | None:
    """Memory by kind of a too large step; None where the compiler placed no buffers."""
    sizes_of: collections.Counter[Place] = collections.Counter()
    for buffer in compiled.buffers:
        sizes_of[buffer.place] += buffer.size
    if not compiled.buffers or not compiled.needed:
        return None
    arguments, outputs = sizes_of[Place.ARGUMENT], sizes_of[Place.OUTPUT]
    temporaries = max(sizes_of[Place.TEMPORARY], compiled.needed - arguments - outputs)
    return Memory(arguments, outputs, 0, temporaries, 0)


def _refusal(compiled: Compiled, whose: sizes.Attribution) -> Finding:
    words = f"The compiler refuses the step: {compiled.message}"
    finding = Finding(Severity.FAILS, Kind.COMPILER, words)
    if op := whose.operation_in(compiled.message):
        source = sources.of_operation(op)
        return dataclasses.replace(finding, op=op.type, node=op.name, source=source)
    return finding


def _too_large_for(compiled: Compiled, report: Report) -> Finding:
    needed = numbers.size(compiled.needed) if compiled.needed else "more"
    available = numbers.size(compiled.available or report.hbm)
    has = f"that a device of {report.topology} has"
    if report.memory_share is not None:
        has = f"that JAX takes of a device of {report.topology}, {report.memory_share:.0%}"
    return Finding(
        Severity.FAILS,
        Kind.MEMORY,
        f"The step needs {needed} of memory, of {available} {has}.",
        _ADVICE_ON_MEMORY,
    )
