"""Finds the uses of names that TensorFlow dropped, and says what to do about each.

    python -m tpu_estimator_compat scan src --exclude third_party

A line for each: file and line, of a notebook also the cell, then name, status, advice. The exit
status is 0 if `run` and `migrate` can do the rest, 1 if something needs a person, 2 if a file could
not be read. Nothing is imported or run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.scan import ScanFinding

NAME = "scan"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that name the files to read."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file, or a folder of them")
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="what to leave out below folders, such as third_party or '*_test.py'; repeatable",
    )


def files_of(arguments: argparse.Namespace, name: str) -> list[str] | None:
    """The files that the arguments name; None, after an error message, if there are none."""
    from tpu_estimator_compat.tools.scan import NoFiles, python_files

    try:
        return list(python_files(arguments.paths, arguments.exclude))
    except NoFiles as error:
        print(f"{name}: {error}", file=sys.stderr)
        return None


def _findings(file: str) -> list[ScanFinding]:
    from tpu_estimator_compat.old_names.legacy.notebook_cells import NotANotebook, is_notebook
    from tpu_estimator_compat.tools.scan import (
        CannotRead,
        read,
        scan_notebook,
        scan_text,
        unreadable,
    )

    try:
        text = read(file).text
        return scan_notebook(text, file) if is_notebook(file) else scan_text(text, file)
    except (CannotRead, NotANotebook) as error:
        return [unreadable(file, error)]


def width() -> int | None:
    """Characters of a line of the terminal; None where standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def run(arguments: argparse.Namespace) -> int:
    from tpu_estimator_compat.tools.scan import report

    files = files_of(arguments, NAME)
    if files is None:
        return 2
    findings = [finding for file in files for finding in _findings(file)]
    if arguments.json:
        print(report.as_json(findings, len(files)))
        return report.exit_status(findings)
    if findings:
        from tpu_estimator_compat.tools.reports.terminal import are_colors_shown

        print(report.table(findings, width(), color=are_colors_shown()), end="\n\n")
    print(report.summary(findings, len(files)))
    return report.exit_status(findings)
