"""Finds the dead names of a module, a notebook or a file."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from tpu_estimator_compat.old_names.legacy import references
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, evidence_of_v1
from tpu_estimator_compat.old_names.legacy.notebooks.cells import (
    NotANotebook,
    Notebook,
    is_notebook,
    place,
    where,
)
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.scan.files import CannotRead, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status
from tpu_estimator_compat.tools.scan.links import ALONE, Links, Place, Use
from tpu_estimator_compat.tools.scan.verdict import Verdict, verdict


@dataclasses.dataclass(frozen=True)
class Module:
    """A module: its text in Python 3, its names of TensorFlow, and the API of its `tensorflow`.

    Attributes:
      references: to names that it imports itself, or by other modules according to its links.
      uses: references to names of other modules.
      names: paths of the names that it binds, which other modules may import.
    """

    source: python2.Mended
    references: list[tuple[Reference, Verdict | None]]
    bare: Dialect
    uses: list[Reference]
    names: Mapping[str, list[str]]


@dataclasses.dataclass(frozen=True)
class Scanned:
    """The findings of a file by itself, and what links it with others: see `Module`."""

    findings: list[ScanFinding]
    uses: Sequence[Use] = ()
    names: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    bare: Dialect = Dialect.V2


@functools.lru_cache(maxsize=2)  # `migrate` asks for the old text and for the new one twice
def parse(text: str, links: Links = ALONE) -> Module:
    """Reads a module; SyntaxError unless it is Python 3, or Python 2 that `migrate` rewrites."""
    source = python2.mended(text)
    every, names = references.read(source.tree, links.near)
    uses = [reference for reference in every if reference.is_open]
    own = [reference for reference in every if not reference.is_open]
    evidence = evidence_of_v1(own)
    shown = links.means_1 if evidence is None else means_1(evidence, where(text, evidence.line))
    bare = Dialect.V1 if shown else Dialect.V2
    found = own + [closed for use in uses for closed in links.closed(use)]
    return Module(source, [(r, _said(r, bare, shown)) for r in found], bare, uses, names)


def scan_text(text: str, file: str, links: Links = ALONE) -> list[ScanFinding]:
    """The findings of a module: its own, and what it has from others."""
    found = _scanned(text, file, links)
    return sorted({*found.findings, *links.findings(file, found.uses)})


def _scanned(text: str, file: str, links: Links) -> Scanned:
    try:
        module = parse(text, links)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Scanned([unparsable(error, text, file)])
    # Python's line endings; splitlines knows more.
    lines = re.split(r"\r\n|\r|\n", module.source.text)
    found: dict[ScanFinding, None] = {}  # a name that is bound twice counts once
    for line, today in module.source.changes:
        found[ScanFinding(file, line, 0, "", Status.PYTHON_2, f"{today}.")] = None
    for reference, said in module.references:
        if said is not None and reference.bare is None:
            found.setdefault(said.at(file, reference.line, _column(lines, reference)))
    old = [f.line for f in found if f.status is Status.PYTHON_2 or f.name in python2.NAMES]
    if old:
        found[
            ScanFinding(file, min(old), 0, "Python 2", Status.DIFFERS, python2.SEMANTICS_WARNING)
        ] = None
    known = {id(reference.node) for reference, _ in module.references if reference.bare is None}
    by_node: dict[int, list[Reference]] = {}
    for use in module.uses:
        by_node.setdefault(id(use.node), []).append(use)
    uses: dict[tuple[Form, tuple[str, ...], bool], list[Place]] = {}
    for node, same in by_node.items():
        key = same[0].form, tuple(use.path for use in same), node in known
        uses.setdefault(key, []).append((same[0].line, _column(lines, same[0]), 0))
    linked = [Use(*key, places) for key, places in uses.items()]
    return Scanned(sorted(found), linked, module.names, module.bare)


def scan_notebook(text: str, file: str, links: Links = ALONE) -> Scanned:
    """What is scanned in a notebook, in the order of its lines; NotANotebook for other files."""
    modules = [(module, _scanned(module, file, links)) for module in Notebook(text).modules()]
    found = [f for module, scanned in modules for f in placed(scanned.findings, module)]
    uses = [
        dataclasses.replace(use, places=[_in_cell(module, *at) for at in use.places])
        for module, scanned in modules
        for use in scanned.uses
    ]
    return Scanned(sorted(found, key=lambda f: (f.cell, f.line, f.column)), uses)


def of_file(near: Collection[str], file: str, links: Links = ALONE) -> Scanned:
    """What is scanned in a file; CannotRead where it cannot be searched."""
    parse.cache_clear()  # a large file may need all memory
    links = dataclasses.replace(links, near=near)
    text = read(file).text
    if not is_notebook(file):
        return _scanned(text, file, links)
    try:
        return scan_notebook(text, file, links)
    except NotANotebook as error:
        raise CannotRead(str(error)) from error


def placed(findings: Iterable[ScanFinding], module: str) -> list[ScanFinding]:
    """The findings of a notebook's module, with their cells and the lines in the cells."""
    made = []
    for finding in findings:
        line, _, cell = _in_cell(module, finding.line)
        made.append(dataclasses.replace(finding, cell=cell, line=line))
    return made


def _in_cell(module: str, line: int, column: int = 0, cell: int = 0) -> Place:
    cell, line = place(module, line)
    return line, column, cell


def unparsable(error: Exception, text: str, file: str) -> ScanFinding:
    if not isinstance(error, SyntaxError):
        return ScanFinding(
            file, 0, 0, "", Status.UNREADABLE, f"The file cannot be parsed: {error}."
        )
    line = error.lineno or 0
    advice = python2.sign(error, text) or f"It is not Python 3: {error.msg}."
    return ScanFinding(file, line, 0, "", Status.UNREADABLE, advice)


def means_1(evidence: Reference, where: str) -> str:
    name = evidence.path.replace("tensorflow", "tf", 1)
    return f"It means TensorFlow 1 here: {where} uses {name}."


def _said(reference: Reference, bare: Dialect, shown: str) -> Verdict | None:
    is_import = reference.form is Form.IMPORT and reference.path == "tensorflow"
    if is_import and shown:
        return Verdict("tf", Status.WORKS, shown)
    return verdict(reference, bare)


def _column(lines: list[str], reference: Reference) -> int:
    return column(lines, reference.line, reference.node.col_offset) + 1


def column(lines: list[str], line: int, offset: int) -> int:
    """The column in characters, from 0, of an `offset` of `ast`, which counts bytes of UTF-8."""
    text = lines[line - 1] if line <= len(lines) else ""
    if text.isascii():
        return offset
    return len(text.encode("utf-8")[:offset].decode("utf-8", "replace"))
