"""A document as text, drawn by rich: paragraphs and tables in a width, in color or without."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

from rich.color import ColorSystem
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.style import Style
from rich.table import Table as Columns
from rich.text import Text

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import document as doc
from tpu_estimator_compat.tools.reports.sources import place, printable

_NARROWEST = 40
_LEAST = 18
"""The width that a column of a split table gets at least, if its cells need it."""

_STYLES = {
    doc.Tone.GOOD: "green",
    doc.Tone.FAIR: "green",
    doc.Tone.WARN: "yellow",
    doc.Tone.BAD: "red",
    doc.Tone.STRONG: "bold",
}


def are_colors_shown() -> bool:
    """Whether standard output is a terminal, and the user has not set NO_COLOR."""
    return environment.is_terminal(sys.stdout) and "NO_COLOR" not in os.environ


def styled(text: str, style: str) -> str:
    """Text with the codes of ANSI terminals for a style.

    >>> styled("fits", "green")
    '\\x1b[32mfits\\x1b[0m'
    """
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def text(document: doc.Document, width: int | None, *, color: bool) -> str:
    """The text that `Document.text` describes; no line is narrower than 40 characters."""
    usual = min(shutil.get_terminal_size((document.usual, 0)).columns, document.widest)
    sheet = Sheet(max(width or usual, _NARROWEST), color)
    writer = _Writer(
        document, sheet, is_file=width is None and not environment.is_terminal(sys.stdout)
    )
    writer.write(document.blocks, "")
    return str(sheet)


class _Writer:
    def __init__(self, document: doc.Document, sheet: Sheet, is_file: bool):
        self._document = document
        self._sheet = sheet
        self._is_file = is_file

    def write(self, blocks: Iterable[doc.Block], indent: str) -> None:
        """Writes blocks, with a blank line before and after a table or a section."""
        previous: doc.Shown | None = None
        for block in doc.shown(blocks, doc.Medium.TERMINAL):
            apart = (doc.Table, doc.Section)
            if previous and (isinstance(previous, apart) or isinstance(block, apart)):
                self._sheet.blank()
            self._write(block, indent)
            previous = block

    def _write(self, block: doc.Shown, indent: str) -> None:
        add = self._sheet.add
        match block:
            case doc.Summary():
                style = _STYLES.get(self._document.verdict.tone, "bold")
                add(f"{self._document.name}: {block.said}", style=style)
                for more in block.more:
                    add(plain(more), "  ", "  ")
            case doc.Paragraph():
                style = _STYLES.get(block.tone, "")
                add(plain(block.said), indent, indent + " " * block.hang, style=style)
            case doc.Items():
                for item in block.items:
                    add(plain(item), f"{indent}- ", f"{indent}  ")
            case doc.Source():
                self._source(block.line, indent)
            case doc.Finding():
                self._finding(block)
            case doc.Log():
                for line in block.text.strip().splitlines():
                    self._sheet.line(f"{indent}| {line}")
            case doc.Table():
                self._table(block)
            case doc.Section():
                add(block.title, style=_STYLES.get(block.tone, ""))
                self.write(block.blocks, "  ")

    def _source(self, source: SourceLine, indent: str) -> None:
        within = f" in {source.function}" if source.function else ""
        self._sheet.add(place(source) + within, indent, indent)
        self._sheet.add(source.code, f"{indent}  ", f"{indent}    ")

    def _finding(self, finding: doc.Finding) -> None:
        indent = " " * 5
        said = f"{finding.kind}: {finding.message}"
        self._sheet.add(said, f"{finding.number:3d}. ", indent)
        if finding.source is not None:
            self._source(finding.source, indent)
        for label, words in finding.facts:
            self._sheet.add(f"{label} {plain(words)}", indent, f"{indent}  ")

    def _table(self, table: doc.Table) -> None:
        whole = table.whole and self._is_file
        width = doc.UNLIMITED if whole else self._sheet.width
        first = [row[:-1] for row in table.rows]
        if table.below and width - self._sheet.least_width(_drawn(table, first)) < table.below:
            for row, (*_, last) in zip(first, table.rows, strict=True):
                self._sheet.draw(_drawn(table, [row]), whole=whole)
                self._sheet.add(plain(last), "    ", "    ")
        elif table.split:
            self._split(table)
        else:
            self._sheet.draw(_drawn(table, table.rows), whole=whole)
        for footnote in table.footnotes:
            self._sheet.add(footnote)

    def _split(self, table: doc.Table) -> None:
        """Draws as many columns as fit, each time beside the first one."""
        start, count = 1, len(table.columns)
        while start < count:
            fitting = (
                end
                for end in range(count, start, -1)
                if self._sheet.least_width(_part(table, start, end)) <= self._sheet.width
            )
            end = next(fitting, start + 1)
            if start > 1:
                self._sheet.blank()
            self._sheet.draw(_part(table, start, end))
            start = end


def plain(words: doc.Cell) -> str:
    """The text of words; of other cells, none."""
    match words:
        case str():
            return words
        case doc.Span():
            return words.text
        case tuple():
            return "".join(map(plain, words))
        case _:
            return ""


def _part(table: doc.Table, start: int, end: int) -> Columns:
    """The first column, and those from `start` to `end`, without rows that are empty there."""
    heads = [column.head for column in table.columns]
    drawn = _columns(table)
    drawn.add_column(heads[0], no_wrap=True)
    for i in range(start, end):
        longest = max(len(text) for text in [heads[i], *(plain(row[i]) for row in table.rows)])
        drawn.add_column(cell(heads[i]), min_width=min(longest, _LEAST))
    for first, *others in table.rows:
        if any(map(plain, others[start - 1 : end - 1])):
            drawn.add_row(*map(_cell, (first, *(c or "-" for c in others[start - 1 : end - 1]))))
    return drawn


def _drawn(table: doc.Table, rows: Iterable[Sequence[doc.Cell]]) -> Columns:
    drawn = _columns(table)
    for column in table.columns:
        drawn.add_column(cell(column.head))
    for row in rows:
        drawn.add_row(*map(_cell, row))
    return drawn


def _columns(table: doc.Table) -> Columns:
    return Columns(
        box=None,
        show_header=bool(table.heads),
        pad_edge=False,
        padding=(0, table.gap, 0, 0),
        header_style="bold",
    )


def _cell(content: doc.Cell) -> RenderableType:
    match content:
        case doc.Span():
            return cell(printable(content.text), _STYLES.get(content.tone, ""))
        case doc.Lines():
            return Group(*map(_cell, content.cells))
        case doc.Table():
            return _drawn(content, content.rows)
        case _:
            return cell(printable(plain(content)))


class Sheet:
    """The lines of a report. `str` joins them, without spaces at their ends.

    Args:
      width: characters of a line. In paragraphs, only longer words exceed it.
      color: whether to show styles, as ANSI codes.
    """

    def __init__(self, width: int, color: bool = False):
        self.width = width
        self._lines: list[Text] = []
        self._console = Console(
            file=io.StringIO(),
            width=width,
            color_system="standard" if color else None,
            force_terminal=color,
            force_jupyter=False,
            no_color=False,
            legacy_windows=False,
        )

    def blank(self) -> None:
        self._lines.append(Text())

    def add(self, text: str, first: str = "", indent: str = "", *, style: str = "") -> None:
        """Adds a paragraph, `first` before its first line and `indent` before the others."""
        wrapped = textwrap.wrap(
            printable(text),
            self.width,
            initial_indent=first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        self._lines += [Text(line, style) for line in wrapped]

    def line(self, text: str) -> None:
        """Adds a line of any length, such as a line of a log."""
        self._lines.append(Text(printable(text)))

    def draw(self, table: Columns, *, whole: bool = False) -> None:
        """Adds a table; with `whole`, it exceeds the width rather than break words."""
        width = doc.UNLIMITED if whole else self.width
        options = self._console.options.update(max_width=width)
        for line in self._console.render_lines(table, options, pad=False):
            drawn = Text.assemble(*((part.text, part.style or "") for part in line))
            drawn.rstrip()
            self._lines.append(drawn)

    def least_width(self, table: Columns) -> int:
        """The width below which a table's words are broken."""
        options = self._console.options.update(max_width=doc.UNLIMITED)
        return Measurement.get(self._console, options, table).minimum

    def __str__(self) -> str:
        file = self._console.file = io.StringIO()
        self._console.print(Text("\n").join(self._lines), soft_wrap=True, end="", highlight=False)
        return file.getvalue()


def cell(text: str, style: str = "") -> Text:
    """Text for a cell of a table, which may be user code; breaks words that are too long."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    return Text(lines, style, overflow="fold")


def grid(rows: Iterable[Sequence[RenderableType]], *, gap: int = 2) -> Columns:
    """A table without lines and headings, with `gap` spaces between columns."""
    table = Columns.grid(padding=(0, gap, 0, 0))
    for row in rows:
        table.add_row(*(cell(c) if isinstance(c, str) else c for c in row))
    return table
