"""Captures, scans and lowers steps, each once, and keeps them as programs for the compiler."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.scan import scan
from tpu_estimator_compat.engine.jax.lowering.stablehlo import LoweringError, lower, refusals
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.engine.runtime import tuning
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.planned import PlannedStep, PlannedTopology
from tpu_estimator_compat.tools.preflight.planned_mode import PlannedMode, capture
from tpu_estimator_compat.tools.preflight.report import Depth

Progress = Callable[[str, float], None]


def stops(finding: Finding) -> bool:
    """Whether a finding surely stops XLA; those on input_fn, model_fn, configuration do not."""
    around = finding.kind in (Kind.CONFIGURATION, Kind.INPUT, Kind.MODEL_FN)
    return finding.severity is Severity.FAILS and not around


@dataclasses.dataclass
class Program:
    """One replica's step, made ready for the compiler.

    Attributes:
      findings: its certain and possible faults.
      dispatch: the steps of one call of the JAX runtime; None where the step was not lowered.
      seconds: wall time by part: "capture", "scan", "lower".
    """

    step: PlannedStep
    findings: list[Finding]
    dispatch: Dispatch | None = None
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)

    @property
    def can_be_lowered(self) -> bool:
        """Whether the input has static shapes and no known fault stops XLA."""
        static = all(t.shape.is_fully_defined() for t in self.step.feeds)
        return static and not any(stops(f) or f.kind is Kind.UNSUPPORTED_OP for f in self.findings)


class Programs:
    """Makes and keeps the programs of a mode by topology; the depth SCAN does not lower them."""

    def __init__(self, planned: PlannedMode, depth: Depth, progress: Progress):
        self._planned = planned
        self._depth = depth
        self._progress = progress
        self._made: dict[tuple[int, int, bool, int | None], Program] = {}

    def get(self, topology: PlannedTopology, share: int | None = None) -> Program:
        """The program of one replica; NoStepError where it cannot be captured."""
        key = (topology.num_replicas, topology.num_hosts, topology.needs_jax, share)
        if key not in self._made:
            self._made[key] = self._make(topology, share)
        return self._made[key]

    def _make(self, topology: PlannedTopology, share: int | None) -> Program:
        watch = _Watch()
        self._progress("Capturing the step", 0)
        step, findings = capture(self._planned, topology, share)
        watch.lap("capture")
        program = Program(step, [*findings, *scan(step)], seconds=watch.seconds)
        watch.lap("scan")
        if self._depth >= Depth.LOWER and program.can_be_lowered:
            self._progress("Lowering the step to StableHLO", 0)
            try:
                program.dispatch = self._dispatch(step)
            except LoweringError as error:
                program.findings += refusals(error, step.captured.graph)
            watch.lap("lower")
        return program

    def _dispatch(self, step: PlannedStep) -> Dispatch:
        part, mode = step.on_jax, self._planned.mode
        # predict() yields each batch as soon as it is computed.
        loop = 1 if mode == ModeKeys.PREDICT else self._planned.loop
        steps = tuning.NUMBERS.steps_of_dispatch(part.bytes_of_step, loop)
        cores = self._planned.cores_per_replica
        return Dispatch(lower(part.step), steps, part.stops_on, cores, part.partition)


class _Watch:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part] = now - self._last
        self._last = now
