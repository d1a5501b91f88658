"""A report as text for a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TypeVar

from tpu_estimator_compat.tools.compare.report import (
    Agreement,
    ArrayComparison,
    CurveComparison,
    Report,
    Verdict,
)
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.sources import printable
from tpu_estimator_compat.tools.reports.terminal import Sheet, grid

_Comparison = TypeVar("_Comparison", ArrayComparison, CurveComparison)

_WIDEST = 100
_ROWS = 8
"""The most rows per kind of array (the others are counted), of scalars, and of names."""

_STYLES = {
    Verdict.SAME: "green",
    Verdict.ROUNDING: "green",
    Verdict.DIVERGES: "yellow",
    Verdict.DIFFERENT: "red",
    Verdict.UNKNOWN: "yellow",
}


def table(report: Report, width: int | None = None, *, color: bool = False) -> str:
    """The report as text: verdict, first difference, a table of the compared values, and speeds."""
    whole = width is None and not sys.stdout.isatty()  # in a file, names must not be cut
    sheet = Sheet(width or min(shutil.get_terminal_size().columns, _WIDEST), color)
    sheet.add(f"Compare: {_verdict(report)}", style=_STYLES[report.verdict])
    if report.instead:
        sheet.add(report.instead, "  ", "  ")
    _first(sheet, report)
    if len(rows := _compared(report)) > 1:
        sheet.blank()
        sheet.draw(grid(rows), whole=whole)
    _failures(sheet, report)
    _speed(sheet, report)
    if report.tolerance:
        _section(sheet, "What is rounding")
        sheet.add(report.tolerance.found, "  ", "  ")
    if report.notes:
        _section(sheet, "Notes")
    for note in report.notes:
        sheet.add(note, "  - ", "    ")
    return str(sheet)


def _section(sheet: Sheet, title: str) -> None:
    sheet.blank()
    sheet.add(title, style="bold")


def _verdict(report: Report) -> str:
    """The summary, without the part that the text below it repeats."""
    if report.first_difference is None:
        return report.summary
    return report.summary.removesuffix(f": {report.first_difference.what}")


def _first(sheet: Sheet, report: Report) -> None:
    first = report.first_difference
    if first is None:
        return
    after = f" (step {first.step})" if first.step is not None else ""
    _section(sheet, f"What differs first: {first.stage.value}{after}{first.by_whom}")
    sheet.add(first.what, "  ", "  ")
    if first.source is not None:
        sheet.add(str(first.source), "  ", "  ")
        sheet.add(first.source.code, "    ", "      ")


def _compared(report: Report) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "", "largest", "tolerance", "")]
    curves = [*([report.loss] if report.loss else []), *report.scalars]
    rows += [_of_curve(c) for c in _worst(curves)]
    kinds = {
        "input": report.input,
        "first update": report.first_update,
        "variables": report.variables,
        "evaluation": report.evaluations,
        "prediction": report.predictions,
    }
    for kind, arrays in kinds.items():
        shown = _worst(arrays)
        rows += [_of_array(kind, c) for c in shown]
        if len(arrays) > len(shown):
            left = len(arrays) - len(shown)
            differing = sum(not c.agreement.agrees for c in arrays[len(shown) :])
            said = f"{differing} different" if differing else "agree"
            rows.append((kind, f"{left} more", "", "", said))
    rows = [tuple(map(printable, row)) for row in rows]
    for names in report.names:
        found = "equal" if names.agrees else f"different{names.by_whom}"
        rows.append(("names", names.what, "", "", f"{found} ({len(names.both)} in both)"))
        for which, only in (("old", names.only_old), ("new", names.only_new)):
            rows += [("", f"  only {which}: {printable(n)}", "", "", "") for n in only[:_ROWS]]
    return rows


def _worst(compared: Sequence[_Comparison]) -> list[_Comparison]:
    """All rows if they are few; else the first few of those that differ, or of all."""
    differing = [c for c in compared if not c.agreement.agrees]
    return (differing or list(compared))[:_ROWS] if len(compared) > _ROWS else list(compared)


def _of_curve(curve: CurveComparison) -> tuple[str, ...]:
    said = curve.agreement.value
    if curve.first_step is not None:
        said += f" from step {curve.first_step} on"
    said += curve.by_whom
    tolerance = numbers.difference(max(curve.tolerance)) if curve.tolerance else ""
    kind = "loss" if curve.name == "loss" else "scalar"
    name = f"{len(curve.steps)} steps" if kind == "loss" else curve.name
    return kind, name, numbers.difference(curve.largest), tolerance, said


def _of_array(kind: str, array: ArrayComparison) -> tuple[str, ...]:
    said = array.agreement.value + array.by_whom
    if array.largest is None:
        return kind, array.name, "", "", f"{said} {array.note}".strip()
    limit = array.tolerance
    if limit is not None and array.agreement is Agreement.DIFFERENT and array.largest <= limit:
        said += " (in the mean square)"
    tolerance = "" if limit is None else numbers.difference(limit)
    return kind, array.name, numbers.difference(array.largest), tolerance, said


def _failures(sheet: Sheet, report: Report) -> None:
    for side in (report.old, report.new):
        if side.failure is not None:
            _section(sheet, f"{side.name}: {side.failure.message}")
            for line in side.failure.traceback.strip().splitlines():
                sheet.line(f"  | {line}")


def _speed(sheet: Sheet, report: Report) -> None:
    sides = [side for side in (report.old, report.new) if side.speed is not None]
    if not sides:
        return
    rows = [("", *(side.name for side in sides))]
    packages = sorted({name for side in sides for name in side.versions})
    rows += [(name, *(side.versions.get(name, "-") for side in sides)) for name in packages]
    scripts = [side.script[0] for side in sides if side.script]
    if len(set(scripts)) > 1:
        rows.append(("script", *scripts))
    figures = [side.speed.figures() for side in sides if side.speed is not None]
    for what in dict.fromkeys(name for known in figures for name in known):
        star = " *" if what == "steps per second" else ""
        rows.append((what + star, *(known.get(what, (0, "-"))[1] for known in figures)))
    sheet.blank()
    sheet.draw(grid(rows))
    sheet.add("* while each step was recorded; no part of the verdict")
