"""A report as text for a terminal."""

from __future__ import annotations

import shutil
import textwrap
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
from tpu_estimator_compat.tools.reports.colors import Color, painted

_Comparison = TypeVar("_Comparison", ArrayComparison, CurveComparison)

_WIDEST = 100
_ROWS = 8
"""Rows of a table; the rest is counted."""


_COLORS = {
    Verdict.SAME: Color.GREEN,
    Verdict.ROUNDING: Color.GREEN,
    Verdict.DIVERGES: Color.YELLOW,
    Verdict.DIFFERENT: Color.RED,
    Verdict.UNKNOWN: Color.YELLOW,
}


def table(report: Report, width: int | None = None, *, color: bool = False) -> str:
    """The verdict, what differs first, each kind of thing that was compared, and what it cost.

    Args:
      report: the report to show.
      width: characters of a line; None means the terminal's, but 100 at most.
      color: whether to color the verdict for a terminal.
    """
    width = width or min(shutil.get_terminal_size().columns, _WIDEST)
    parts = [
        [
            painted(line, _COLORS[report.verdict], on=color)
            for line in _wrapped(f"Compare: {_verdict(report)}", width)
        ],
        _first(report, width),
        _compared(report),
        _failures(report),
        _speed(report),
    ]
    if report.tolerance:
        parts.append(["What is rounding", *_wrapped(report.tolerance.found, width, "  ")])
    if report.notes:
        parts.append(["Notes", *(x for n in report.notes for x in _wrapped(n, width, "  - "))])
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _verdict(report: Report) -> str:
    """The summary, without what is said below it."""
    if report.first_difference is None:
        return report.summary
    return report.summary.removesuffix(f": {report.first_difference.what}")


def _first(report: Report, width: int) -> list[str]:
    first = report.first_difference
    if first is None:
        return []
    after = f" (step {first.step})" if first.step is not None else ""
    lines = [f"What differs first: {first.stage.value}{after}"]
    lines += _wrapped(first.what, width, "  ")
    if first.source is not None:
        lines += [f"  {first.source}", f"    {first.source.code}"]
    return lines


def _compared(report: Report) -> list[str]:
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
    for names in report.names:
        found = "equal" if names.agrees else "different"
        rows.append(("names", names.what, "", "", f"{found} ({len(names.both)} in both)"))
        rows += [("", f"  only old: {name}", "", "", "") for name in names.only_old[:_ROWS]]
        rows += [("", f"  only new: {name}", "", "", "") for name in names.only_new[:_ROWS]]
    return _columns(rows) if len(rows) > 1 else []


def _worst(compared: Sequence[_Comparison]) -> list[_Comparison]:
    """The rows that differ, or else the first few with the largest differences."""
    differing = [c for c in compared if not c.agreement.agrees]
    return (differing or list(compared))[:_ROWS] if len(compared) > _ROWS else list(compared)


def _of_curve(curve: CurveComparison) -> tuple[str, ...]:
    said = curve.agreement.value
    if curve.first_step is not None:
        said += f" from step {curve.first_step} on"
    tolerance = numbers.difference(max(curve.tolerance)) if curve.tolerance else ""
    kind = "loss" if curve.name == "loss" else "scalar"
    name = f"{len(curve.steps)} steps" if kind == "loss" else curve.name
    return kind, name, numbers.difference(curve.largest), tolerance, said


def _of_array(kind: str, array: ArrayComparison) -> tuple[str, ...]:
    said = array.agreement.value
    if array.largest is None:
        return kind, array.name, "", "", f"{said} {array.note}".strip()
    limit = array.tolerance
    if limit is not None and array.agreement is Agreement.DIFFERENT and array.largest <= limit:
        said += " (in the mean square)"
    tolerance = "" if limit is None else numbers.difference(limit)
    return kind, array.name, numbers.difference(array.largest), tolerance, said


def _failures(report: Report) -> list[str]:
    lines = []
    for side in (report.old, report.new):
        if side.failure is not None:
            lines += [f"{side.name}: {side.failure.message}"]
            lines += [f"  | {line}" for line in side.failure.traceback.strip().splitlines()]
    return lines


def _speed(report: Report) -> list[str]:
    sides = [side for side in (report.old, report.new) if side.speed is not None]
    if not sides:
        return []
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
    return [*_columns(rows), "* while each step was recorded; no part of the verdict"]


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]


def _wrapped(text: str, width: int, first: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
