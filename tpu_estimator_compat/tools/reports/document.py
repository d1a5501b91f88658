"""A report as a value: its text, its HTML page and its JSON are made from it.

A command builds a `Document` and shows it; `text`, `page` and `json` give the three forms:

    class Verdict(document.Verdict):
        FITS = "compiles and fits", 0, Tone.GOOD
        FAILS = "fails", 1, Tone.BAD

    made = Document("Preflight", Verdict.FAILS, [Summary("fails on v2:1x1"), Table(rows)], data)
    exit_code = made.show(json=arguments.json, html=arguments.html)

| block | in a terminal | on a page |
|---|---|---|
| `Summary` | the document's name and a sentence, in the verdict's color | a box with the verdict |
| `Paragraph`, `Items`, `Section` | wrapped lines; indented in sections | `p`, `ul`, `section` |
| `Finding` | a numbered paragraph with its lines | a box |
| `Source` | place, and the code | the same |
| `Log` | lines as they are, behind a bar | preformatted text |
| `Table` | columns | a table; the rows after the first 40 are folded |
| `Bar`, `Cards`, `Chips`, `Curves`, `Folded` | left out | drawn |
| `Only` | left out in one of the two | |

Everything is text, which the renderers escape: user code can be neither markup nor codes, and no
name can begin a line, as only `Lines` and `Log` have several. The module imports neither TensorFlow
nor rich.
"""

from __future__ import annotations

import dataclasses
import enum
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import json_form

UNLIMITED = 10_000
"""The width for files, longer than any line."""


class Tone(enum.StrEnum):
    """The meaning of a color. Where a color tells things apart, so does a word."""

    GOOD = "good"
    FAIR = "fair"
    WARN = "warn"
    BAD = "bad"
    STRONG = "strong"
    FAINT = "faint"
    PLAIN = ""


class Verdict(enum.Enum):
    """The base of the verdicts of each tool: a word, its exit code and its tone.

    Members are in order of severity; the word is the `value`, in JSON too.
    """

    exit_code: int
    tone: Tone

    def __new__(cls, word: str, exit_code: int = 0, tone: Tone = Tone.PLAIN) -> Self:
        member = object.__new__(cls)
        member._value_ = word
        member.exit_code = exit_code
        member.tone = tone
        return member

    @classmethod
    def worst(cls, verdicts: Iterable[Self]) -> Self:
        """The last of the given verdicts in the order of members; ValueError without any."""
        order = list(cls)
        return max(verdicts, key=order.index)


class Medium(enum.Enum):
    TERMINAL = "terminal"
    PAGE = "page"


@dataclasses.dataclass(frozen=True)
class Span:
    """A part of a sentence; `value` is the exact value of a rounded figure, for programs."""

    text: str
    tone: Tone = Tone.PLAIN
    code: bool = False
    value: float | None = None


Words = str | Span | tuple[str | Span, ...]


@dataclasses.dataclass(frozen=True)
class Summary:
    """The verdict in a sentence, and more sentences, each a paragraph of its own."""

    said: str
    more: Sequence[Words] = ()


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """A paragraph; in a terminal, lines after the first are indented by `hang` spaces more."""

    said: Words
    tone: Tone = Tone.PLAIN
    hang: int = 0


@dataclasses.dataclass(frozen=True)
class Items:
    items: Sequence[Words]


@dataclasses.dataclass(frozen=True)
class Source:
    """A line of the user's code, with its place."""

    line: SourceLine


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault: its kind, a message, the line of code, and `facts`, pairs of a label and words."""

    number: int
    kind: str
    message: str
    tone: Tone
    source: SourceLine | None = None
    facts: Sequence[tuple[str, Words]] = ()


@dataclasses.dataclass(frozen=True)
class Log:
    """Lines of a traceback or a log."""

    text: str


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a bar: `share` of its width; `name` is told on it, `label` written where it fits.

    `fill` is a class of the style sheet.
    """

    share: float
    fill: str
    name: str = ""
    label: str = ""


@dataclasses.dataclass(frozen=True)
class Bar:
    """Parts side by side: low in a cell of a table; else with a caption, a mark and a legend.

    Attributes:
      said: the bar in words, for those who do not see it.
      mark: the place of a line, as a share of the width; `limit` is written at it.
      legend: pairs of a fill and its meaning.
    """

    parts: Sequence[Part]
    said: str = ""
    mark: float | None = None
    limit: str = ""
    caption: str = ""
    legend: Sequence[tuple[str, Words]] = ()


@dataclasses.dataclass(frozen=True)
class Lines:
    """Several things above each other in one cell."""

    cells: Sequence[Cell]


@dataclasses.dataclass(frozen=True)
class Column:
    """The head of a column; on a page, numbers are aligned at the right.

    `fill` is that of parts of bars which the column explains.
    """

    head: str = ""
    number: bool = False
    fill: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells; the first cell names its row.

    Attributes:
      heads: of the columns, as strings where that is enough; may be empty.
      footnotes: sentences directly below.
      whole: in a file, exceeds the width rather than break words.
      below: the least width of the last column: where there is less room, it follows below each
        row; 0 for a column that stays.
      split: columns without room follow in a further table, beside the first column again.
      gap: spaces between columns.
    """

    rows: Sequence[Sequence[Cell]]
    heads: Sequence[str | Column] = ()
    footnotes: Sequence[str] = ()
    whole: bool = False
    below: int = 0
    split: bool = False
    gap: int = 2

    @property
    def columns(self) -> list[Column]:
        return [Column(head) if isinstance(head, str) else head for head in self.heads]


Cell = Words | Bar | Lines | Table


@dataclasses.dataclass(frozen=True)
class Line:
    """A curve: values at rising global steps, gaps where not finite; `style` is its CSS class."""

    name: str
    style: str
    steps: Sequence[int]
    values: Sequence[float]


@dataclasses.dataclass(frozen=True)
class Curves:
    """Curves over global steps, later ones over earlier ones, with their values at the pointer."""

    caption: str
    lines: Sequence[Line]
    logarithmic: bool = False


@dataclasses.dataclass(frozen=True)
class Card:
    title: str
    blocks: Sequence[Block]
    style: str = ""


@dataclasses.dataclass(frozen=True)
class Cards:
    """Boxes side by side, where there is room."""

    cards: Sequence[Card]


@dataclasses.dataclass(frozen=True)
class Chips:
    """Words in a row, each in a frame of its tone, as the stages of a way."""

    chips: Sequence[Span]


@dataclasses.dataclass(frozen=True)
class Section:
    title: str
    blocks: Sequence[Block] = ()
    tone: Tone = Tone.STRONG


@dataclasses.dataclass(frozen=True)
class Folded:
    """Blocks that open when their title is chosen."""

    title: str
    blocks: Sequence[Block]
    is_open: bool = False


@dataclasses.dataclass(frozen=True)
class Only:
    """Blocks for one medium."""

    medium: Medium
    blocks: Sequence[Block]


Shown = (
    Summary
    | Paragraph
    | Items
    | Source
    | Finding
    | Log
    | Table
    | Bar
    | Curves
    | Cards
    | Chips
    | Section
    | Folded
)
Block = Shown | Only


_DRAWN = (Bar, Cards, Chips, Curves, Folded)


def shown(blocks: Iterable[Block], medium: Medium) -> Iterator[Shown]:
    """The blocks that a medium shows, in the place of those for one medium only."""
    for block in blocks:
        if isinstance(block, Only):
            if block.medium is medium:
                yield from shown(block.blocks, medium)
        elif medium is Medium.PAGE or not isinstance(block, _DRAWN):
            yield block


@dataclasses.dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
      name: of the command, such as "Preflight".
      blocks: in the order in which they are read.
      data: the keys of the JSON object; values may have dataclasses and enums in them.
      subject: the page's heading; the name if empty.
      widest, usual: characters of a line: the most in a terminal, and those in a file.
    """

    name: str
    verdict: Verdict
    blocks: Sequence[Block]
    data: Mapping[str, Any]
    subject: str = ""
    widest: int = 100
    usual: int = 100

    def text(self, width: int | None = None, *, color: bool = False) -> str:
        """Lines of at most `width` characters, but for words that are longer.

        None stands for the terminal's width; where standard output is a file, `whole` tables may
        exceed it.
        """
        from tpu_estimator_compat.tools.reports import terminal

        return terminal.text(self, width, color=color)

    def page(self) -> str:
        """One self-contained page in UTF-8: it needs no network and no further files."""
        from tpu_estimator_compat.tools.reports import page

        return page.page(self)

    def json(self) -> str:
        """An object; floats that are not finite are the strings "nan", "inf" and "-inf"."""
        return json_form.text(dict(self.data))

    def show(self, *, json: bool = False, html: str | None = None) -> int:
        """Prints the text or the JSON, writes the page to the file `html`; gives the exit code."""
        if json:
            print(self.json())
        else:
            from tpu_estimator_compat.tools.reports.terminal import are_colors_shown

            print(self.text(color=are_colors_shown()))
        if html:
            pathlib.Path(html).write_text(self.page(), encoding="utf-8")
        return self.verdict.exit_code
