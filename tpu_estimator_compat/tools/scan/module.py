"""Finds the dead names of a module, a notebook or a file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, evidence_of_v1
from tpu_estimator_compat.old_names.legacy.notebooks.cells import (
    NotANotebook,
    Notebook,
    is_notebook,
    place,
    where,
)
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.references import Form, Reference, references
from tpu_estimator_compat.tools.scan.files import CannotRead, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status
from tpu_estimator_compat.tools.scan.verdict import Verdict, verdict


@dataclasses.dataclass(frozen=True)
class Module:
    """A module: its text in Python 3, its names of TensorFlow, and the API of its `tensorflow`."""

    source: python2.Mended
    references: list[tuple[Reference, Verdict | None]]
    bare: Dialect


def parse(text: str) -> Module:
    """Reads a module; SyntaxError unless it is Python 3, or Python 2 that `migrate` rewrites."""
    source = python2.mended(text)
    found = references(source.tree)
    evidence = evidence_of_v1(found)
    bare = Dialect.V2 if evidence is None else Dialect.V1
    means_1 = "" if evidence is None else _shown(evidence, text)
    return Module(source, [(r, _said(r, bare, means_1)) for r in found], bare)


def scan_text(text: str, file: str) -> list[ScanFinding]:
    try:
        module = parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        return [unparsable(error, text, file)]
    # Python's line endings; splitlines knows more.
    lines = re.split(r"\r\n|\r|\n", module.source.text)
    found: dict[ScanFinding, None] = {}  # a name that is bound twice counts once
    for line, today in module.source.changes:
        found[ScanFinding(file, line, 0, "", Status.PYTHON_2, f"{today}.")] = None
    for reference, said in module.references:
        if said is not None:
            line = reference.line
            at = column(lines, line, reference.node.col_offset) + 1
            finding = ScanFinding(file, line, at, said.name, said.status, _advice(said))
            found.setdefault(finding, None)
    old = [f.line for f in found if f.status is Status.PYTHON_2 or f.name in python2.NAMES]
    if old:
        found[
            ScanFinding(file, min(old), 0, "Python 2", Status.DIFFERS, python2.SEMANTICS_WARNING)
        ] = None
    return sorted(found)


def scan_notebook(text: str, file: str) -> list[ScanFinding]:
    """The findings of a notebook, in the order of its lines; NotANotebook for other files."""
    modules = Notebook(text).modules()
    found = [finding for module in modules for finding in placed(scan_text(module, file), module)]
    return sorted(found, key=lambda f: (f.cell, f.line, f.column))


def of_file(file: str) -> list[ScanFinding]:
    """The findings of a file; CannotRead where it cannot be searched."""
    text = read(file).text
    if not is_notebook(file):
        return scan_text(text, file)
    try:
        return scan_notebook(text, file)
    except NotANotebook as error:
        raise CannotRead(str(error)) from error


def placed(findings: Iterable[ScanFinding], module: str) -> list[ScanFinding]:
    """The findings of a notebook's module, with their cells and the lines in the cells."""
    made = []
    for finding in findings:
        cell, line = place(module, finding.line)
        made.append(dataclasses.replace(finding, cell=cell, line=line))
    return made


def unparsable(error: Exception, text: str, file: str) -> ScanFinding:
    if not isinstance(error, SyntaxError):
        return ScanFinding(
            file, 0, 0, "", Status.UNREADABLE, f"The file cannot be parsed: {error}."
        )
    line = error.lineno or 0
    advice = python2.sign(error, text) or f"It is not Python 3: {error.msg}."
    return ScanFinding(file, line, 0, "", Status.UNREADABLE, advice)


def _shown(evidence: Reference, text: str) -> str:
    name = evidence.path.replace("tensorflow", "tf", 1)
    return f"It means TensorFlow 1 here: {where(text, evidence.line)} uses {name}."


def _said(reference: Reference, bare: Dialect, means_1: str) -> Verdict | None:
    is_import = reference.form is Form.IMPORT and reference.path == "tensorflow"
    if is_import and means_1:
        return Verdict("tf", Status.WORKS, means_1)
    return verdict(reference, bare)


def _advice(said: Verdict) -> str:
    target = said.target
    moved = said.row is not None and (said.row.move_to or not said.name.startswith("tf."))
    if said.status is Status.WORKS and target is not None and moved:
        return f"Write {target}."
    return said.advice


def column(lines: list[str], line: int, offset: int) -> int:
    """The column in characters, from 0, of an `offset` of `ast`, which counts bytes of UTF-8."""
    text = lines[line - 1] if line <= len(lines) else ""
    if text.isascii():
        return offset
    return len(text.encode("utf-8")[:offset].decode("utf-8", "replace"))
