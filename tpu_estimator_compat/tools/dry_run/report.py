"""The result of a dry run, as a table and as JSON. Needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import pathlib

from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tools.reports import document, json_form
from tpu_estimator_compat.tools.reports.document import (
    Block,
    Document,
    Paragraph,
    Span,
    Table,
    Tone,
)
from tpu_estimator_compat.tools.reports.sources import place

VERDICT = "Dry run: "
"""The beginning of the last paragraph of a table."""


@dataclasses.dataclass
class NotReached:
    """A call in the source of the script that did not run."""

    call: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return place(SourceLine(self.file, self.line))


@dataclasses.dataclass
class Call(NotReached):
    """A call of an estimator's method, or of its keras_model's.

    Attributes:
      call: the method, such as "train", or "keras_model().fit" for a Keras model's.
      file, line: of the script's line that made the call, itself or by train_and_evaluate.
      replicas, steps: 0 before the call made a graph; `fit` has the steps that it was given.
      loss: of the last step, or the mean of an evaluation.
      written: checkpoints and exports, by the user's names of their folders.
      hooks: classes of hooks, listeners and callbacks, those of model_fn too.
      error: the error that ended it, such as "ValueError: ..."; else empty.
      repeated: later calls that were given the result of this one.
    """

    model_fn: str = ""
    replicas: int = 0
    steps: int = 0
    seconds: float = 0.0
    loss: float | None = None
    written: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    error: str = ""
    repeated: int = 0


@dataclasses.dataclass(frozen=True)
class Report:
    """A dry run.

    Attributes:
      status: the exit status; None while the script runs, and where its process was killed.
      stopped: why the dry run ended the script; empty where it ended by itself.
    """

    status: int | None
    calls: tuple[Call, ...] = ()
    not_reached: tuple[NotReached, ...] = ()
    stopped: str = ""

    def to_json(self) -> str:
        return json_form.text(self)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report that `to_json` wrote; ValueError for other text."""
        found: Report = json_form.decoded(cls, json_form.parsed(text))
        return found

    def write(self, path: str) -> None:
        """Writes a file that is whole at any time."""
        new = pathlib.Path(f"{path}.new")
        new.write_text(self.to_json(), encoding="utf-8")
        new.replace(path)


class Verdict(document.Verdict):
    ENDED = "ended", 0, Tone.GOOD
    FAILED = "failed", 1, Tone.BAD


def told(report: Report) -> Document:
    """A row for each call, with what it wrote and its hooks below; then what did not run."""
    blocks: list[Block] = []
    if report.calls:
        blocks.append(Table([_row(call) for call in report.calls], _HEAD))
    for call in report.calls:
        for text in _details(call):
            blocks.append(Paragraph(f"{call.call} ({call.place}) {text}", hang=4))
    blocks.append(Paragraph(verdict(report), Tone.STRONG))
    if report.calls:
        blocks.append(Paragraph(_NOT_REDIRECTED))
    ended = Verdict.FAILED if report.status else Verdict.ENDED
    return Document("Dry run", ended, blocks, vars(report))


_HEAD = ("call", "where", "model_fn", "replicas", "steps", "time", "loss", "")
_NOT_REDIRECTED = (
    "Files that the script itself writes, moves or removes were not redirected, but in folders "
    "that its flags name."
)


def _row(call: Call) -> tuple[Span | str, ...]:
    loss = "-" if call.loss is None else f"{call.loss:.4g}"
    steps = (str(call.replicas or "-"), str(call.steps or "-"))
    more = f"+{call.repeated} not run" if call.repeated else ""
    last = "failed" if call.error else more
    name = Span(call.call, Tone.BAD if call.error else Tone.GOOD)
    return (name, call.place, call.model_fn, *steps, f"{call.seconds:.2f} s", loss, last)


def _details(call: Call) -> list[str]:
    found = []
    if call.written:
        found.append(f"wrote {', '.join(call.written)}")
    if call.hooks:
        found.append(f"called {', '.join(call.hooks)}")
    if call.error:
        found.append(f"failed: {call.error.splitlines()[0]}")
    return found


def verdict(report: Report) -> str:
    """How the script ended, and the calls in its source that it did not reach."""
    failed = sum(bool(call.error) for call in report.calls)
    made = len(report.calls)
    told = f"{VERDICT}{made} call{'s' * (made > 1)} of estimators, {failed} failed; "
    if not report.calls:
        told = f"{VERDICT}the script reached no call of an estimator; "
    ended = "did not end" if report.status is None else f"exit status {report.status}"
    told += f"{ended}."
    if report.stopped:
        told += f" {report.stopped} It was stopped there."
    if report.status == 1 and [call.call for call in report.calls[-1:]] == ["predict"]:
        told += f" {_CUT}" if report.calls[-1].steps and not report.calls[-1].error else ""
    if report.not_reached:
        missed = ", ".join(f"{call.call} ({call.place})" for call in report.not_reached)
        told += f" Not reached: {missed}."
    return told


_CUT = (
    "The script failed after a prediction of one batch: where it expects more of them, use "
    "--whole-predictions."
)
