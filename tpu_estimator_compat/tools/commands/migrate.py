"""Replaces imports and names that TensorFlow dropped by those of `tpu_estimator_compat.v1`.

    python -m tpu_estimator_compat migrate train.py
    python -m tpu_estimator_compat migrate --write src

Without --write it only prints a diff. A line follows for each name to change or check by hand, with
advice. The exit status is 0 if all is done, 1 if something must be changed by hand, 2 if a file
could not be read or written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from tpu_estimator_compat import environment
from tpu_estimator_compat.tools.commands import scan as scan_command
from tpu_estimator_compat.tools.reports.sources import say

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.migrate.writing import Rewriting
    from tpu_estimator_compat.tools.scan.findings import ScanFinding
    from tpu_estimator_compat.tools.scan.tree import Tree

NAME = "migrate"
_WORK = "tpu_estimator_compat.tools.migrate.codemod", "of_file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scan_command.add_paths(parser)
    parser.add_argument("--write", action="store_true", help="write the files, not a diff")
    parser.add_argument(
        "--color", action="store_true", help="color the diff even if it goes to no terminal"
    )


def run(arguments: argparse.Namespace) -> int:
    files = scan_command.files_of(arguments, NAME)
    if files is None:
        return 2
    from tpu_estimator_compat.tools.reports.terminal import are_colors_shown

    tree = scan_command.searched(files)
    migration = _Run(arguments, tree, arguments.color or are_colors_shown())
    try:
        with scan_command.each_file(_WORK, len(files), tree.near) as rewrite:
            for file in files:
                migration.migrate(rewrite, file)
    finally:  # an interrupted run, too, says what it has written
        status = migration.finish(len(files))
    return status


class _Run:
    """Migrates files, and keeps what to tell at the end."""

    def __init__(self, arguments: argparse.Namespace, tree: Tree, color: bool):
        self._tree = tree
        self._write = arguments.write
        self._roots = arguments.paths
        self._color = color
        self._done = 0
        self._changed = 0
        self._mended = 0
        self._left: list[ScanFinding] = []
        self._unwritten: list[str] = []

    def migrate(self, rewrite: Callable[..., Rewriting], file: str) -> None:
        from tpu_estimator_compat.tools.migrate import writing
        from tpu_estimator_compat.tools.scan import files, findings

        found, links = self._tree.findings(file), self._tree.links[file]
        if not writing.is_below(file, self._roots):
            target = os.path.realpath(file)
            self._leave(file, f"It links to {target}, outside the given paths, and is unchanged.")
        elif file in self._tree.unread:
            self._left += found
        elif found or links.used:
            try:
                self._take(file, rewrite(file, self._write, links))
            except files.CannotRead as error:
                self._left.append(findings.unreadable(file, error))
        self._done += 1

    def _take(self, file: str, made: Rewriting) -> None:
        from tpu_estimator_compat.tools.migrate import writing

        self._left += made.report
        if made.after == made.source.text:
            return
        if self._write:
            try:
                writing.write(file, made.source, made.after)
            except OSError as error:
                self._leave(file, f"The file cannot be written: {error.strerror or error}")
                return
            say(f"Rewrote {file}")
        else:
            terminal = environment.is_terminal(sys.stdout)
            print(writing.shown(made.difference, color=self._color, terminal=terminal), end="")
        self._changed += 1
        self._mended += made.mended

    def _leave(self, file: str, why: str) -> None:
        from tpu_estimator_compat.tools.scan.findings import unwritten

        self._left.append(unwritten(file, why))
        self._unwritten.append(file)

    def finish(self, files: int) -> int:
        from tpu_estimator_compat.tools.reports.document import UNLIMITED, Document, Section, Tone
        from tpu_estimator_compat.tools.scan import findings

        hard = [f for f in self._left if f.status.is_manual]
        differing = [f for f in self._left if not f.status.is_manual]
        shown = {"To be looked at:": differing, "To be done by hand:": hard}
        tables = [
            Section(title, [findings.table(left)], Tone.PLAIN)
            for title, left in shown.items()
            if left
        ]
        verdict = findings.worst(self._left)
        if tables:
            told = Document("Migrate", verdict, tables, {}, widest=UNLIMITED)
            print(f"\n{told.text(color=self._color)}")
        done = "changed" if self._write else "to change"
        print(
            f"\n{findings.searched(self._left, files)}, {self._changed} {done}: "
            f"{findings.counted(self._mended, 'finding')} rewritten, {len(hard)} to change by hand."
        )
        if self._unwritten:
            say(f"Not written: {', '.join(self._unwritten)}.")
        if self._done < files:
            say(f"Stopped early: {findings.counted(files - self._done, 'file')} left unchanged.")
        if self._changed and not self._write:
            print("Nothing is written yet: add --write for that.")
        return verdict.exit_code
