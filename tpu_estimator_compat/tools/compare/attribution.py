"""Attributes differences from the original to TensorFlow, or to this package."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from tpu_estimator_compat.tools.compare.report import (
    FirstDifference,
    NamesComparison,
    Report,
    Stage,
    Verdict,
)

_PACKAGE = "this package"
_KINDS = ("scalars", "input", "first_update", "variables", "evaluations", "predictions", "names")


def attributed(report: Report, sessions: Report) -> Report:
    """Fills `by` of each difference in `report`, which compares a run here with the original.

    `sessions` compares the same run with the original's loops in sessions of this TensorFlow, which
    ran the same script: what differs there too is by this package.
    """
    if sessions.verdict is Verdict.UNKNOWN:
        note = f"Sessions cannot tell who makes the differences: {sessions.unknown}"
        return dataclasses.replace(report, notes=(*report.notes, note))
    old, new = (side.versions["tensorflow"] for side in (report.old, report.new))
    other = "TensorFlow" + " or script" * (report.old.script != report.new.script)
    note = (
        f"The original's loops also ran in sessions of TensorFlow {new}. A difference is by {other}"
        f" if they differ from {old} in the same way, and else by {_PACKAGE}."
    )
    changes: dict[str, Any] = {
        kind: _marked(getattr(report, kind), getattr(sessions, kind), other) for kind in _KINDS
    }
    if report.loss:
        [changes["loss"]] = _marked([report.loss], filter(None, [sessions.loss]), other)
    if first := report.first_difference:
        by = other if _place(first) < _place(sessions.first_difference) else _PACKAGE
        changes["first_difference"] = dataclasses.replace(first, by=by)
    return dataclasses.replace(report, notes=(*report.notes, note), **changes)


def _marked(compared: Iterable[Any], of_sessions: Iterable[Any], other: str) -> tuple[Any, ...]:
    """Comparisons of one kind, with `by` of those that do not agree."""
    differing = {name for name, agrees in map(_facts, of_sessions) if not agrees}
    found = []
    for each in compared:
        name, agrees = _facts(each)
        by = "" if agrees else _PACKAGE if name in differing else other
        found.append(dataclasses.replace(each, by=by))
    return tuple(found)


def _facts(compared: Any) -> tuple[str, bool]:
    """The name, and whether both runs agree."""
    if isinstance(compared, NamesComparison):
        return compared.what, compared.agrees
    return compared.name, compared.agreement.agrees


def _place(first: FirstDifference | None) -> tuple[int, int]:
    return (list(Stage).index(first.stage), first.step or 0) if first else (len(Stage), 0)
