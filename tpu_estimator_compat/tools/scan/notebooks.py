"""Finds the dead names of a notebook, with their cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tpu_estimator_compat.old_names.legacy.notebook_cells import (
    NotANotebook,
    Notebook,
    is_notebook,
    place,
)
from tpu_estimator_compat.tools.scan.files import CannotRead, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding
from tpu_estimator_compat.tools.scan.module import scan_text


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
