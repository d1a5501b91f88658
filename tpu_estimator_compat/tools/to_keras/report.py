"""What was found of a model that was led out: differences, weights, and what needs a look."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tpu_estimator_compat.tools.reports import document, numbers
from tpu_estimator_compat.tools.reports.document import (
    Block,
    Document,
    Items,
    Log,
    Paragraph,
    Section,
    Span,
    Summary,
    Table,
    Tone,
)

_MOST = 8  # rows of gradients that are listed
_POINTS = (
    "Of each gradient, the least difference at three points, the weights and two near them: "
    "rounding moves values over kinks such as ReLU's."
)


class Verdict(document.Verdict):
    EQUAL = "equal", 0, Tone.GOOD
    DIFFERS = "different", 1, Tone.BAD
    FAILS = "does not run", 1, Tone.BAD
    REFUSED = "has no form in Keras", 1, Tone.BAD


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The largest difference of an output, loss or gradient, and the largest that is rounding."""

    kind: str
    name: str
    largest: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        return self.largest <= self.tolerance  # NaN does not


@dataclasses.dataclass(frozen=True)
class Report:
    """The result of `to_keras`; `print` shows it.

    Attributes:
      source: what was led out; `out`: the file that was written, or was not.
      lines: of that file.
      used: the number of the source's variables that the model has; `unused`: the others' names.
      with_tensorflow: the lines of the file that need TensorFlow, with their numbers.
      notes: what the file leaves out or does otherwise.
      log: what ended the check, or the operations without a form.
    """

    source: str
    out: str
    verdict: Verdict
    comparisons: list[Comparison] = dataclasses.field(default_factory=list)
    lines: int = 0
    used: int = 0
    unused: list[str] = dataclasses.field(default_factory=list)
    with_tensorflow: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    log: str = ""

    @property
    def document(self) -> Document:
        return Document("To Keras", self.verdict, list(_blocks(self)), vars(self), self.source)

    @property
    def exit_code(self) -> int:
        """For the shell: 0 if the files were written, 1 if not."""
        return self.verdict.exit_code

    def __str__(self) -> str:
        return self.document.text()


def _blocks(report: Report) -> Iterator[Block]:
    yield Summary(_said(report))
    rows = sorted(
        report.comparisons,
        key=lambda c: (c.kind == "gradient", not math.isnan(c.largest), -c.largest),
    )
    most = len([c for c in rows if c.kind != "gradient"]) + _MOST
    if rows:
        cells = [_row(comparison) for comparison in rows[:most]]
        left = [f"{len(rows) - most} more gradients differ less."] if len(rows) > most else []
        left += [_POINTS] if rows[-1].kind == "gradient" else []
        yield Table(cells, ("", "", "largest", "tolerance", ""), left, whole=True)
    if report.used:
        yield Paragraph(f"Variables: {report.used} used, {len(report.unused)} unused.")
    if report.log:
        yield Log(report.log)
    for title, items in (
        ("Unused variables:", report.unused),
        ("Lines that need TensorFlow:", report.with_tensorflow),
        ("Not as in the original:", report.notes),
    ):
        if items:
            yield Section(title, [Items(items)], Tone.PLAIN)


def _said(report: Report) -> str:
    if report.verdict is Verdict.EQUAL:
        return f"equal up to rounding; wrote {report.out}, {report.lines} lines, and its weights"
    why = {
        Verdict.DIFFERS: "the Keras model differs from the original",
        Verdict.FAILS: "the Keras model does not run",
        Verdict.REFUSED: "the model has operations without a form in Keras",
    }
    return f"{why[report.verdict]}; nothing was written"


def _row(comparison: Comparison) -> tuple[str | Span, ...]:
    tone = Tone.GOOD if comparison.agrees else Tone.BAD
    return (
        comparison.kind,
        comparison.name,
        numbers.difference(comparison.largest),
        numbers.difference(comparison.tolerance),
        Span("equal" if comparison.agrees else "different", tone),
    )
