"""Rows of text side by side, within a width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from tpu_estimator_compat.tools.preflight.rendering.comparison import Row

_GAP = "  "
_NARROW = 18
"""A column may be made this narrow before it is moved below the others."""


def columns(
    header: Sequence[str],
    rows: Sequence[Row],
    width: int,
    paint: Callable[[Row, str, str], str] = lambda row, cell, shown: shown,
) -> list[str]:
    """Lines of a table; columns for which there is no room follow below, with rows of their own.

    Args:
      header: a name for each column.
      rows: the rows, with a cell for each column.
      width: characters of a line; only a long word goes past it.
      paint: of a row, a cell and a padded line of this cell makes what is shown.

    Returns:
      Lines; an empty one between two parts.
    """
    names = max((len(row.name) for row in rows), default=0)
    room = width - names
    natural = [_longest([h, *_cells(rows, i)]) for i, h in enumerate(header)]
    lines: list[str] = []
    start = 0
    while start < len(header):
        widths, end = _that_fit(header, rows, natural, start, room)
        if start:
            lines.append("")
        here = [Row("", tuple(header)), *(row for row in rows if any(row.cells[start:end]))]
        for row in here:
            lines += _lines(row, range(start, end), names, widths, paint)
        start = end
    return lines


def _that_fit(
    header: Sequence[str], rows: Sequence[Row], natural: Sequence[int], start: int, room: int
) -> tuple[list[int], int]:
    """Widths of the columns from `start` that go side by side, at least one; where they end."""
    widths: list[int] = []
    for i in range(start, len(header)):
        words = [word for cell in [header[i], *_cells(rows, i)] for word in cell.split()]
        wanted = max(_longest(words), min(natural[i], _NARROW))
        if widths and sum(widths) + wanted + len(_GAP) * (len(widths) + 1) > room:
            break
        widths.append(wanted)
    spare = room - sum(widths) - len(_GAP) * len(widths)
    for j, taken in enumerate(widths):
        more = max(0, min(spare, natural[start + j] - taken))
        widths[j] += more
        spare -= more
    return widths, start + len(widths)


def _lines(
    row: Row,
    shown: range,
    names: int,
    widths: Sequence[int],
    paint: Callable[[Row, str, str], str],
) -> list[str]:
    """The lines of a row, as many as its highest cell needs."""
    cells = [row.cells[i] or ("-" if row.name else "") for i in shown]
    parts = [
        textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for n in range(max(map(len, parts))):
        line = (row.name if n == 0 else "").ljust(names)
        last = len(parts) - 1
        for i, (cell, part, width) in enumerate(zip(cells, parts, widths, strict=True)):
            text = part[n] if n < len(part) else ""
            # No spaces at the end of a line.
            text = text if i == last else text.ljust(width)
            line += _GAP + (paint(row, cell, text) if text.strip() else text)
        lines.append(line.rstrip())
    return lines


def _cells(rows: Sequence[Row], column: int) -> list[str]:
    return [row.cells[column] for row in rows]


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)
