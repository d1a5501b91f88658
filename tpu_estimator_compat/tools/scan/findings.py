"""A finding: a dead name at its place in a file, and the remedy; and the report of all."""

from __future__ import annotations

import collections
import dataclasses
import os
import re
from collections.abc import Sequence

from tpu_estimator_compat.tools.reports import document, json_form
from tpu_estimator_compat.tools.reports.document import (
    UNLIMITED,
    Block,
    Document,
    Paragraph,
    Section,
    Span,
    Table,
    Tone,
)


class Status(document.Verdict):
    """The status of a finding; a file that cannot be read is worst."""

    WORKS = "works", 0, Tone.GOOD
    DIFFERS = "differs", 0, Tone.WARN
    PYTHON_2 = "python 2", 0, Tone.WARN
    BY_HAND = "by hand", 1, Tone.BAD
    UNKNOWN = "unknown", 1, Tone.BAD
    REFUSED = "refused", 1, Tone.BAD
    UNREADABLE = "unreadable", 2, Tone.BAD

    @property
    def is_manual(self) -> bool:
        """Whether `run` and `migrate` leave the change to the user."""
        return self.exit_code > 0


_HINTS = {
    Status.REFUSED: "not provided; the advice says what to write instead",
    Status.UNKNOWN: "never public, or from a module that is not here: the advice says it",
    Status.BY_HAND: "to be rewritten by hand",
    Status.UNREADABLE: "files that could not be searched",
    Status.WORKS: "`migrate` rewrites these; `run` runs the script as it is",
    Status.DIFFERS: "`migrate` and `run` handle these; the advice says what differs",
    Status.PYTHON_2: "Python 2: `migrate` rewrites these; `run` cannot take them",
}
"""In the order of the report, which begins with what must be changed by hand."""


_LEAST = 60
"""The least width of a column of advice; where there is less room, advice follows below."""


@dataclasses.dataclass(frozen=True, order=True)
class ScanFinding:
    """A use of a dead name, or the reason why a file cannot be searched.

    Attributes:
      file: the path, as given or below a given folder.
      line: number from 1; 0 for the file, or the cell, as a whole.
      column: number of the character, from 1; 0 for the line as a whole.
      name: the name as the table of dead names spells it, such as `tf.contrib.tpu.TPUConfig`; as
        the file spells it, if it is in no table.
      cell: number of the notebook's cell, from 1, counting all cells; 0 in other files.
    """

    file: str
    line: int
    column: int
    name: str
    status: Status = dataclasses.field(compare=False)
    advice: str = ""
    cell: int = 0

    @property
    def place(self) -> str:
        """`file:line`, which editors understand; `file, cell 3, line 2` in a notebook."""
        if self.cell:
            line = f", line {self.line}" if self.line else ""
            return f"{self.file}, cell {self.cell}{line}"
        return f"{self.file}:{self.line}" if self.line else self.file


def unwritten(file: str, why: str) -> ScanFinding:
    return ScanFinding(file, 0, 0, "", Status.UNREADABLE, f"Not written: {why}")


def unreadable(file: str, error: Exception) -> ScanFinding:
    return ScanFinding(file, 0, 0, "", Status.UNREADABLE, f"Not read: {error}")


def worst(findings: Sequence[ScanFinding]) -> Status:
    """The status whose exit code is that of all findings."""
    return Status.worst([Status.WORKS, *(finding.status for finding in findings)])


def report(findings: Sequence[ScanFinding], files: int) -> Document:
    """A row for each finding; then their number by status, with what it means.

    The JSON is an object: `files`, the number searched; `counts` by status; `findings`, a list.
    """
    counts = collections.Counter(finding.status for finding in findings)
    listed = [json_form.encoded(finding) for finding in findings]
    data = {
        "files": files,
        "counts": {status.value: number for status, number in counts.items()},
        "findings": [{k: v for k, v in f.items() if k != "cell" or v} for f in listed],
    }
    blocks: list[Block] = [Paragraph(f"{searched(findings, files)}; no dead names.")]
    if findings:
        having = len({finding.file for finding in findings})
        said = f"{searched(findings, files)}, {counted(len(findings), 'finding')} in {having}:"
        rows = [
            (f"{counts[status]:6d}", f"{status.value:10s}", hint)
            for status, hint in _HINTS.items()
            if counts[status]
        ]
        told = [_TESTING] if any(map(_is_test_of_estimators, findings)) else []
        told += [_LEAVING] if any(finding.name in _MADE for finding in findings) else []
        blocks = [table(findings), Section(said, [Table(rows, (), told, whole=True, gap=1)])]
    return Document("Scan", worst(findings), blocks, data, widest=UNLIMITED)


def table(findings: Sequence[ScanFinding]) -> Table:
    """A row for each finding: place, name, status, advice; those to change by hand first."""
    rows = [
        (f.place, f.name or "-", Span(f.status.value, f.status.tone), f.advice)
        for f in sorted(findings, key=lambda finding: not finding.status.is_manual)
    ]
    return Table(rows, whole=True, below=_LEAST)


_TESTING = "For tests of estimators: `tpu_estimator_compat.testing`, on replicas without a TPU."
_LEAVING = "To have the model as Keras 3 code: `python -m tpu_estimator_compat to-keras`."
_MADE = {"tf.estimator.Estimator", "tf.estimator.tpu.TPUEstimator", "tf.contrib.tpu.TPUEstimator"}
_TEST_FILE = re.compile(r"test_.*|.*_test|conftest")
_ESTIMATORS = re.compile(r"\b(estimator|testing|tpu)\b|Estimator")


def _is_test_of_estimators(finding: ScanFinding) -> bool:
    is_test = _TEST_FILE.fullmatch(os.path.splitext(os.path.basename(finding.file))[0])
    return is_test is not None and _ESTIMATORS.search(finding.name) is not None


def searched(findings: Sequence[ScanFinding], files: int) -> str:
    """The number of files searched, and of files that could not be, in words."""
    unread = {f.file for f in findings if f.status is Status.UNREADABLE and not f.cell}
    if not unread:
        return f"{counted(files, 'file')} searched"
    missing = "none" if len(unread) == files else f"{files - len(unread)}"
    return f"{counted(files, 'file')}, {missing} of which could be searched"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
