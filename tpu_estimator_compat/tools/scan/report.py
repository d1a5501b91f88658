"""Shows findings to people, as a table, and to programs, as JSON."""

from __future__ import annotations

import collections
import json
import os
import re
from collections.abc import Sequence

from tpu_estimator_compat.tools.reports import json_form
from tpu_estimator_compat.tools.reports.sources import printable
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status

_HINTS = {
    Status.WORKS: "`migrate` rewrites these; `run` runs the script as it is",
    Status.DIFFERS: "`migrate` and `run` handle these; the advice says what differs",
    Status.REFUSED: "not provided; the advice says what to write instead",
    Status.UNKNOWN: "never public, and without a replacement here",
    Status.BY_HAND: "to be rewritten by hand",
    Status.PYTHON_2: "Python 2: `migrate` rewrites these; `run` cannot take them",
    Status.UNREADABLE: "files that could not be searched",
}

_STYLES = {Status.WORKS: "green", Status.DIFFERS: "yellow", Status.PYTHON_2: "yellow"}
_LEAST = 60
"""The least width of a column of advice; where there is less room, advice follows below."""


def table(findings: Sequence[ScanFinding], width: int | None = None, *, color: bool = False) -> str:
    """A line for each finding: place, name, status, advice; those to change by hand first.

    `width` is the terminal's, in which advice is wrapped; None, for a file, wraps nothing.

    >>> print(table([ScanFinding("a.py", 3, 1, "tf.contrib.x", Status.UNKNOWN, "Write it anew.")]))
    a.py:3  tf.contrib.x  unknown  Write it anew.
    """
    from tpu_estimator_compat.tools.reports.terminal import UNLIMITED, Sheet, cell, grid

    findings = sorted(findings, key=lambda finding: not finding.status.is_manual)
    rows = [
        (
            printable(f.place),
            printable(f.name) or "-",
            cell(f.status.value, _STYLES.get(f.status, "red")),
        )
        for f in findings
    ]
    sheet = Sheet(width or UNLIMITED, color)
    if sheet.width - sheet.least_width(grid(rows)) >= _LEAST:
        sheet.draw(grid((*row, printable(f.advice)) for row, f in zip(rows, findings, strict=True)))
        return str(sheet)
    for row, finding in zip(rows, findings, strict=True):
        sheet.draw(grid([row]))
        sheet.add(finding.advice, "    ", "    ")
    return str(sheet)


def summary(findings: Sequence[ScanFinding], files: int) -> str:
    """The number of findings of each status, and its meaning."""
    counts = collections.Counter(finding.status for finding in findings)
    if not findings:
        return f"{searched(findings, files)}; no dead names."
    having = len({finding.file for finding in findings})
    lines = [f"{searched(findings, files)}, {counted(len(findings), 'finding')} in {having}:"]
    for status in Status:
        if counts[status]:
            lines.append(f"{counts[status]:6d} {status.value:10s} {_HINTS[status]}")
    if any(_is_test_of_estimators(finding) for finding in findings):
        lines.append(_TESTING)
    return "\n".join(lines)


_TESTING = "For tests of estimators: `tpu_estimator_compat.testing`, on replicas without a TPU."
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


def as_json(findings: Sequence[ScanFinding], files: int) -> str:
    """An object: `files`, the number searched; `counts` by status; `findings`, a list."""
    counts = collections.Counter(finding.status.value for finding in findings)
    listed = [
        {key: value for key, value in json_form.encoded(f).items() if key != "cell" or value}
        for f in findings
    ]
    return json.dumps({"files": files, "counts": dict(counts), "findings": listed}, indent=1)


def exit_status(findings: Sequence[ScanFinding]) -> int:
    """2 if a file could not be read, 1 if something must be changed by hand, else 0."""
    if any(finding.status is Status.UNREADABLE for finding in findings):
        return 2
    return int(any(finding.status.is_manual for finding in findings))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
