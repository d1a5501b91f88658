"""Finds the uses of names that TensorFlow dropped, and says what to do about each.

    python -m tpu_estimator_compat scan src --exclude third_party

It prints a line for each use: file and line, in a notebook also the cell, then name, status and
advice. Nothing is imported or run. The exit status is 0 if `run` and `migrate` handle all names, 1
if something must be changed by hand, 2 if a file could not be read.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat.engine.signals.activity import Activity
from tpu_estimator_compat.tools.reports.sources import say

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.scan.tree import Tree

NAME = "scan"
_WORK = "tpu_estimator_compat.tools.scan.module", "of_file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object, not a table")


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments that name the files to read."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a Python file, a notebook, or a folder of them"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files and folders to leave out below folders, such as third_party or '*_test.py'; "
        "may be repeated",
    )


def files_of(arguments: argparse.Namespace, name: str) -> list[str] | None:
    """The files that the arguments name; None, after an error message, if there are none."""
    from tpu_estimator_compat.tools.scan.files import NoFiles, python_files

    try:
        return list(python_files(arguments.paths, arguments.exclude))
    except NoFiles as error:
        say(f"{name}: {error}", error=True)
        return None


@contextlib.contextmanager
def each_file(work: tuple[str, str], files: int, *given: Any) -> Iterator[Callable[..., Any]]:
    """A function that calls `work`, a module and its function, in a child, for each of files."""
    from tpu_estimator_compat.tools.scan.each_file import EachFile

    numbers = itertools.count(1)
    with EachFile(work, given=given) as read, Activity() as tell:

        def done(file: str, *others: Any) -> Any:
            tell("Reading", f" {min(next(numbers), files)} of {files}: {file}")
            return read(file, *others)

        yield done


def searched(files: Sequence[str]) -> Tree:
    """The tree of the files, after a search."""
    from tpu_estimator_compat.tools.scan.tree import Tree

    tree = Tree(files)
    with each_file(_WORK, len(files), tree.near) as read:
        tree.search(read)
    return tree


def run(arguments: argparse.Namespace) -> int:
    files = files_of(arguments, NAME)
    if files is None:
        return 2
    from tpu_estimator_compat.tools.scan.findings import report

    tree = searched(files)
    findings = [finding for file in files for finding in tree.findings(file)]
    return report(findings, len(files)).show(json=arguments.json)
