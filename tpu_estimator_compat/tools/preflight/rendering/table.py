"""The reports as text for a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from rich.table import Table

from tpu_estimator_compat.engine.jax.lowering.findings import Severity
from tpu_estimator_compat.tools.preflight.rendering import comparison, groups
from tpu_estimator_compat.tools.preflight.report import TOO_LARGE, WITH_ROOM, Report, Verdict
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.sources import place
from tpu_estimator_compat.tools.reports.terminal import Sheet, cell

_NARROWEST, _WIDEST = 40, 120
_NARROW = 18
"""Least width of a column; a report without room for it follows below the others."""
_BUFFERS = 10
_STYLES = {
    Verdict.FITS.value: "green",
    WITH_ROOM: "green",
    Verdict.FAILS.value: "red",
    TOO_LARGE: "red",
    Verdict.CLOSE.value: "yellow",
    Verdict.UNKNOWN.value: "yellow",
    groups.HEADINGS[Severity.FAILS]: "red",
    groups.HEADINGS[Severity.MIGHT]: "yellow",
}


def table(reports: Sequence[Report], width: int | None = None, color: bool = False) -> str:
    """The reports side by side, then their findings and their limits.

    The text is ASCII except for quoted user code.

    Args:
      width: characters of a line, at least 40; None for the terminal's, at most 120. Only
        longer words exceed it.
    """
    verdict = Verdict.worst([report.verdict for report in reports])
    if width is None:
        width = min(shutil.get_terminal_size().columns, _WIDEST)
    sheet = Sheet(max(width, _NARROWEST), color)
    sheet.add(f"Preflight: {comparison.summary(reports)}", style=_STYLES[verdict.value])
    sheet.blank()
    _figures(sheet, reports)
    _findings(sheet, reports)
    _buffers(sheet, reports)
    _remarks(sheet, "Could not tell", groups.unknowns(reports))
    _remarks(sheet, "Notes", groups.notes(reports))
    _remarks(sheet, "What this cannot know", groups.cannot_know(reports))
    return str(sheet)


def _heading(sheet: Sheet, text: str) -> None:
    sheet.blank()
    sheet.add(text, style=_STYLES.get(text.partition(" (")[0], "bold"))


def _figures(sheet: Sheet, reports: Sequence[Report]) -> None:
    """Adds the figures; reports that do not fit into the width follow below."""
    rows, labels = comparison.rows(reports), comparison.labels(reports)
    start = 0
    while start < len(labels):
        fitting = (
            end
            for end in range(len(labels), start, -1)
            if sheet.least_width(_columns(labels, rows, start, end)) <= sheet.width
        )
        end = next(fitting, start + 1)
        if start:
            sheet.blank()
        sheet.draw(_columns(labels, rows, start, end))
        start = end
    sheet.add(comparison.footnote(rows))
    sheet.add(comparison.compiled_as(reports))


def _columns(labels: Sequence[str], rows: Sequence[comparison.Row], start: int, end: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(no_wrap=True)
    for i in range(start, end):
        longest = max(len(text) for text in [labels[i], *(row.cells[i] for row in rows)])
        table.add_column(cell(labels[i]), min_width=min(longest, _NARROW))
    for row in rows:
        if any(row.cells[start:end]):
            style = _STYLES.get if row.name == comparison.VERDICT else lambda *_: ""
            table.add_row(row.name, *(cell(c or "-", style(c, "")) for c in row.cells[start:end]))
    return table


def _findings(sheet: Sheet, reports: Sequence[Report]) -> None:
    if not any(report.findings for report in reports):
        _heading(sheet, "No findings")
    for severity, title in groups.HEADINGS.items():
        found = groups.findings(reports, severity)
        if found:
            _heading(sheet, f"{title} ({len(found)})")
        for number, group in enumerate(found, 1):
            _finding(sheet, number, group)


def _finding(sheet: Sheet, number: int, group: groups.FindingGroup) -> None:
    finding = group.finding
    indent = "     "
    sheet.add(f"{finding.kind.value}: {finding.message}", f"{number:3d}. ", indent)
    source = finding.source
    if source is not None:
        within = f" in {source.function}" if source.function else ""
        sheet.add(place(source) + within, indent, indent)
        sheet.add(source.code, f"{indent}    ", f"{indent}      ")
    if group.operations:
        sheet.add(f"operation {group.operations}", indent, f"{indent}  ")
    if finding.advice:
        sheet.add(f"instead: {finding.advice}", indent, f"{indent}  ")
    if group.where:
        sheet.add(f"on: {group.where}", indent, f"{indent}  ")


def _buffers(sheet: Sheet, reports: Sequence[Report]) -> None:
    for label, report in zip(comparison.labels(reports), reports, strict=True):
        alike = groups.buffers(report)
        if alike:
            _heading(sheet, f"Largest buffers on {label}")
        for group in alike[:_BUFFERS]:
            _buffer(sheet, group)
        if len(alike) > _BUFFERS:
            sheet.add(f"and {len(alike) - _BUFFERS} kinds of smaller ones", "  ", "  ")


def _buffer(sheet: Sheet, group: groups.BufferGroup) -> None:
    buffer = group.buffer
    indent = " " * 14
    number = f"{group.number} of " if group.number > 1 else ""
    padding = buffer.size - buffer.unpadded
    padded = f", {numbers.size(padding)} of it padding" if padding > 0 else ""
    sheet.add(f"{number}{buffer.shape}{padded}", f"  {numbers.size(buffer.size):>10}  ", indent)
    if group.operations:
        sheet.add(group.operations, indent, indent)
    if buffer.source is not None:
        sheet.add(f"{place(buffer.source)}  {buffer.source.code}", indent, f"{indent}  ")


def _remarks(sheet: Sheet, title: str, remarks: Sequence[groups.Shared[str]]) -> None:
    if not remarks:
        return
    _heading(sheet, title)
    for remark in remarks:
        where = f"{remark.where}: " if remark.where else ""
        sheet.add(f"{where}{remark.said}", "  - ", "    ")
