"""Reports as text, drawn by rich: paragraphs and tables within a width, in color or without."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.style import Style
from rich.table import Table
from rich.text import Text

from tpu_estimator_compat.tools.reports.sources import printable

UNLIMITED = 10_000
"""The width for files, longer than any line."""


def are_colors_shown() -> bool:
    """Whether standard output is a terminal, and the user has not set NO_COLOR."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def styled(text: str, style: str) -> str:
    """Text with the codes of ANSI terminals for a style.

    >>> styled("fits", "green")
    '\\x1b[32mfits\\x1b[0m'
    """
    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


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

    def draw(self, table: Table, *, whole: bool = False) -> None:
        """Adds a table; with `whole`, it exceeds the width rather than break words."""
        width = UNLIMITED if whole else self.width
        options = self._console.options.update(max_width=width)
        for line in self._console.render_lines(table, options, pad=False):
            drawn = Text.assemble(*((part.text, part.style or "") for part in line))
            drawn.rstrip()
            self._lines.append(drawn)

    def least_width(self, table: Table) -> int:
        """The width below which a table's words are broken."""
        options = self._console.options.update(max_width=UNLIMITED)
        return Measurement.get(self._console, options, table).minimum

    def __str__(self) -> str:
        file = self._console.file = io.StringIO()
        self._console.print(Text("\n").join(self._lines), soft_wrap=True, end="", highlight=False)
        return file.getvalue()


def cell(text: str, style: str = "") -> Text:
    """Text for a cell of a table, which may be user code; breaks words that are too long."""
    lines = "\n".join(printable(line) for line in text.splitlines())
    return Text(lines, style, overflow="fold")


def grid(rows: Iterable[Sequence[RenderableType]], *, gap: int = 2) -> Table:
    """A table without lines and headings, with `gap` spaces between columns."""
    table = Table.grid(padding=(0, gap, 0, 0))
    for row in rows:
        table.add_row(*(cell(c) if isinstance(c, str) else c for c in row))
    return table
