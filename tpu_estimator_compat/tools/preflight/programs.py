"""Captures, scans and lowers steps: programs for the compiler."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from tpu_estimator_compat.engine.functions import tuning
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.scan import scan
from tpu_estimator_compat.engine.jax.lowering.stablehlo import LoweringError, lower, refusals
from tpu_estimator_compat.engine.jax.lowering.step_module import Dispatch
from tpu_estimator_compat.spec import ModeKeys
from tpu_estimator_compat.tools.preflight.planned_mode import (
    PlannedMode,
    PlannedStep,
    PlannedTopology,
    capture,
)
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


def program_of(
    planned: PlannedMode,
    topology: PlannedTopology,
    share: int | None,
    depth: Depth,
    progress: Progress,
) -> Program:
    """The program of one replica with `share` examples; the depth SCAN does not lower it.

    Raises NoStepError where it cannot be captured.
    """
    seconds: dict[str, float] = {}
    with _timed(seconds, "capture"):
        progress("Capturing the step", 0)
        step, findings = capture(planned, topology, share)
    with _timed(seconds, "scan"):
        program = Program(step, [*findings, *scan(step)], seconds=seconds)
    is_static = all(t.shape.is_fully_defined() for t in step.feeds)
    is_refused = any(stops(f) or f.kind is Kind.UNSUPPORTED_OP for f in program.findings)
    if depth >= Depth.LOWER and is_static and not is_refused:
        with _timed(seconds, "lower"):
            progress("Lowering the step to StableHLO", 0)
            try:
                program.dispatch = dispatch_of(planned, step)
            except LoweringError as error:
                program.findings += refusals(error, step.captured.graph)
    return program


def dispatch_of(planned: PlannedMode, step: PlannedStep) -> Dispatch:
    part = step.on_jax
    # predict() yields each batch as soon as it is computed.
    loop = 1 if planned.mode == ModeKeys.PREDICT else planned.loop
    steps = tuning.NUMBERS.steps_of_dispatch(part.bytes_of_step, loop)
    return Dispatch(
        lower(part.step), steps, part.stops_on, planned.cores_per_replica, part.partition
    )


@contextlib.contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[part] = time.perf_counter() - start
