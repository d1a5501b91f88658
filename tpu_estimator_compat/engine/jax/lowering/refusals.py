"""Findings from XLA's error for a step, with the user's lines."""

from __future__ import annotations

import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity
from tpu_estimator_compat.engine.jax.lowering.stablehlo import LoweringError


def refusals(error: LoweringError, graph: tf.Graph) -> list[Finding]:
    """A finding for each operation that XLA's error names; a general one if it names none."""
    if not error.nodes:
        return [Finding(Severity.MIGHT, Kind.COMPILER, f"XLA does not lower it: {error.message}")]
    kind = Kind.NOT_CONSTANT if error.not_constant else Kind.UNSUPPORTED_OP
    names = sources.Sources(graph)
    findings = []
    for name in error.nodes:
        op = names.find(name)
        message = f"XLA refuses it: {error.first_line}"
        where = (op.type, op.name, sources.of_operation(op)) if op else ("", name, None)
        findings.append(Finding(Severity.FAILS, kind, message, error.advice, *where))
    return findings
