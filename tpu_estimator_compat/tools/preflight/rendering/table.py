"""The reports as text for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from tpu_estimator_compat.engine.jax.lowering.findings import Severity
from tpu_estimator_compat.tools.preflight.rendering import comparison, groups
from tpu_estimator_compat.tools.preflight.rendering.columns import columns
from tpu_estimator_compat.tools.preflight.report import TOO_LARGE, WITH_ROOM, Report, Verdict
from tpu_estimator_compat.tools.reports import numbers
from tpu_estimator_compat.tools.reports.colors import Color, painted
from tpu_estimator_compat.tools.reports.sources import place, printable

_NARROWEST, _WIDEST = 40, 120
_BUFFERS = 10
_COLORS = {
    Verdict.FITS.value: Color.GREEN,
    WITH_ROOM: Color.GREEN,
    Verdict.FAILS.value: Color.RED,
    TOO_LARGE: Color.RED,
    Verdict.CLOSE.value: Color.YELLOW,
    Verdict.UNKNOWN.value: Color.YELLOW,
    groups.HEADINGS[Severity.FAILS]: Color.RED,
    groups.HEADINGS[Severity.MIGHT]: Color.YELLOW,
}


def table(reports: Sequence[Report], width: int | None = None, color: bool = False) -> str:
    """The reports side by side, then what they found, and what they cannot know.

    All of it is ASCII but for what comes from the user's code.

    Args:
      reports: of one call; at least one.
      width: characters of a line, 40 or more; None means the terminal's, but 120 at most. Only
        words that are longer go past it.
      color: whether to use the colours of ANSI terminals. They never say more than the words.

    Raises:
      ValueError: there is no report.
    """
    verdict = Verdict.worst([report.verdict for report in reports])
    if width is None:
        width = min(shutil.get_terminal_size().columns, _WIDEST)
    text = _Text(max(width, _NARROWEST), color)
    text.add(f"Preflight: {comparison.summary(reports)}", style=_COLORS[verdict.value])
    text.blank()
    _figures(text, reports)
    _findings(text, reports)
    _buffers(text, reports)
    _remarks(text, "Could not tell", groups.unknowns(reports))
    _remarks(text, "Notes", groups.notes(reports))
    _remarks(text, "What this cannot know", groups.cannot_know(reports))
    return "\n".join(text.lines)


class _Text:
    """Lines of a width."""

    def __init__(self, width: int, color: bool):
        self.lines: list[str] = []
        self.width = width
        self._color = color

    def paint(self, text: str, style: str) -> str:
        return painted(text, style, on=self._color)

    def blank(self) -> None:
        self.lines.append("")

    def heading(self, text: str) -> None:
        self.blank()
        self.add(text, style=_COLORS.get(text.partition(" (")[0], Color.BOLD))

    def add(self, text: str, first: str = "", indent: str = "", style: str = "") -> None:
        """A paragraph, `first` before its first line and `indent` before the others."""
        wrapped = textwrap.wrap(
            printable(text),
            self.width,
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        self.lines += [self.paint(line, style) for line in wrapped]


def _figures(text: _Text, reports: Sequence[Report]) -> None:
    def paint(row: comparison.Row, cell: str, shown: str) -> str:
        if not row.name:
            return text.paint(shown, Color.BOLD)
        return text.paint(shown, _COLORS[cell]) if row.name == comparison.VERDICT else shown

    rows = comparison.rows(reports)
    text.lines += columns(comparison.labels(reports), rows, text.width, paint)
    text.add(comparison.footnote(rows))
    text.add(comparison.compiled_as(reports))


def _findings(text: _Text, reports: Sequence[Report]) -> None:
    if not any(report.findings for report in reports):
        text.heading("No findings")
    for severity, title in groups.HEADINGS.items():
        found = groups.findings(reports, severity)
        if found:
            text.heading(f"{title} ({len(found)})")
        for number, group in enumerate(found, 1):
            _finding(text, number, group)


def _finding(text: _Text, number: int, group: groups.FindingGroup) -> None:
    finding = group.finding
    indent = "     "
    text.add(f"{finding.kind.value}: {finding.message}", f"{number:3d}. ", indent)
    source = finding.source
    if source is not None:
        within = f" in {source.function}" if source.function else ""
        text.add(place(source) + within, indent, indent)
        text.add(source.code, f"{indent}    ", f"{indent}      ")
    if group.operations:
        text.add(f"operation {group.operations}", indent, f"{indent}  ")
    if finding.advice:
        text.add(f"instead: {finding.advice}", indent, f"{indent}  ")
    if group.where:
        text.add(f"on: {group.where}", indent, f"{indent}  ")


def _buffers(text: _Text, reports: Sequence[Report]) -> None:
    for label, report in zip(comparison.labels(reports), reports, strict=True):
        alike = groups.buffers(report)
        if alike:
            text.heading(f"Largest buffers on {label}")
        for group in alike[:_BUFFERS]:
            _buffer(text, group)
        if len(alike) > _BUFFERS:
            text.add(f"and {len(alike) - _BUFFERS} kinds of smaller ones", "  ", "  ")


def _buffer(text: _Text, group: groups.BufferGroup) -> None:
    buffer = group.buffer
    indent = " " * 14
    number = f"{group.number} of " if group.number > 1 else ""
    padding = buffer.size - buffer.unpadded
    padded = f", {numbers.size(padding)} of it padding" if padding > 0 else ""
    text.add(f"{number}{buffer.shape}{padded}", f"  {numbers.size(buffer.size):>10}  ", indent)
    if group.operations:
        text.add(group.operations, indent, indent)
    if buffer.source is not None:
        text.add(f"{place(buffer.source)}  {buffer.source.code}", indent, f"{indent}  ")


def _remarks(text: _Text, title: str, remarks: Sequence[groups.Shared[str]]) -> None:
    if not remarks:
        return
    text.heading(title)
    for remark in remarks:
        where = f"{remark.where}: " if remark.where else ""
        text.add(f"{where}{remark.said}", "  - ", "    ")
