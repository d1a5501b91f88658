"""Judges two runs: compares their records, and finds the first difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.compare import differences, first_difference
from tpu_estimator_compat.tools.compare.evidence import Evidence
from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    ArrayComparison,
    FirstDifference,
    OpComparison,
    Report,
    Stage,
    Tolerance,
    Verdict,
)


def judge(
    old: Evidence,
    new: Evidence,
    yardstick: Sequence[Evidence],
    tolerance: Tolerance,
    notes: Sequence[str] = (),
) -> Report:
    """Compares `new` with `old`, the reference; `yardstick` has further runs of the old side."""
    of_yardstick = [y.curves for y in yardstick]
    curves = differences.curves(old.curves, new.curves, of_yardstick, tolerance)
    loss = curves.pop("loss", None)

    def compared(kind: str) -> tuple[ArrayComparison, ...]:
        of_yardstick = [getattr(y, kind) for y in yardstick]
        return differences.arrays(getattr(old, kind), getattr(new, kind), of_yardstick, tolerance)

    report = Report(
        Verdict.UNKNOWN,
        "",
        old.side,
        new.side,
        old.side.script,
        len(loss.steps) if loss else 0,
        tolerance,
        None,
        loss,
        tuple(curves.values()),
        input=compared("input"),
        first_update=compared("first_update"),
        variables=compared("variables"),
        evaluations=compared("evaluations"),
        predictions=compared("predictions"),
        names=differences.names(old.names, new.names),
        first_step=_first_step(old, new, yardstick, tolerance),
        notes=tuple(notes),
    )
    first = first_difference.find(report, old, new)
    verdict = _verdict(report, first)
    return dataclasses.replace(
        report,
        verdict=verdict,
        summary=_summary(verdict, report, first),
        first_difference=first,
        unknown=_NOTHING_IN_COMMON if verdict is Verdict.UNKNOWN else "",
    )


_NOTHING_IN_COMMON = (
    "Nothing was found that both runs have: no loss, no scalars, no variables and no results. The "
    "script must train, evaluate or predict with an estimator."
)


def _first_step(
    old: Evidence, new: Evidence, yardstick: Sequence[Evidence], tolerance: Tolerance
) -> tuple[OpComparison, ...] | None:
    """Operations that both sides have, in the order of the old side's graph."""
    if not old.operations or not new.operations:
        return None
    return tuple(
        OpComparison(
            facts["op"],
            facts["type"],
            facts["gradient"],
            differences.array(
                facts["op"],
                old.activations[facts["op"]],
                new.activations[facts["op"]],
                [y.activations[facts["op"]] for y in yardstick if facts["op"] in y.activations],
                tolerance,
            ),
            SourceLine(facts["file"], facts["line"], code=facts["code"]) if facts["file"] else None,
        )
        for facts in old.operations
        if facts["op"] in new.activations
    )


def _verdict(report: Report, first: FirstDifference | None) -> Verdict:
    arrays = (*report.variables, *report.evaluations, *report.predictions, *report.first_update)
    agreements = [*(a.agreement for a in arrays), *(c.agreement for c in report.curves)]
    if not any(a not in (Agreement.ONLY_OLD, Agreement.ONLY_NEW) for a in agreements):
        return Verdict.UNKNOWN
    if first is not None:
        return Verdict.DIVERGES if first.stage is Stage.LATER else Verdict.DIFFERENT
    equal = all(a is Agreement.EQUAL for a in agreements)
    return Verdict.SAME if equal else Verdict.ROUNDING


def _summary(verdict: Verdict, report: Report, first: FirstDifference | None) -> str:
    if verdict is Verdict.UNKNOWN:
        return "could not be judged: there is nothing to compare"
    if first is None:
        of = f" over {report.steps} step{'s' * (report.steps > 1)}" if report.steps else ""
        return f"{verdict.value}{of}"
    if first.stage is Stage.LATER:
        return f"diverges from step {first.step} on: {first.what}"
    return f"different, first in the {first.stage.value}: {first.what}"
