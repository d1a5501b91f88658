"""Rewrites imports and dead names to `tpu_estimator_compat.v1`, and shows what it would change.

    python -m tpu_estimator_compat migrate train.py
    python -m tpu_estimator_compat migrate --write src

Without --write it only prints a diff. What needs a person is listed after it, with what to do. The
exit status is 0 if all is done, 1 if something needs a person, 2 if a file could not be read or
written.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tpu_estimator_compat import environment
from tpu_estimator_compat.tools.commands import scan as scan_command

if TYPE_CHECKING:
    from tpu_estimator_compat.tools.migrate.codemod import Migration
    from tpu_estimator_compat.tools.migrate.notebooks import NotebookMigration
    from tpu_estimator_compat.tools.scan import FileText, ScanFinding

    Rewritten = Migration | NotebookMigration

NAME = "migrate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    scan_command.add_paths(parser)
    parser.add_argument("--write", action="store_true", help="change the files")
    parser.add_argument("--color", action="store_true", help="color the diff, terminal or not")


def run(arguments: argparse.Namespace) -> int:
    try:
        import libcst  # noqa: F401
    except ImportError:
        print(
            f"{NAME} needs libcst, which is not installed. Write: "
            f"{environment.pip_line('migrate')}",
            file=sys.stderr,
        )
        return 2
    files = scan_command.files_of(arguments, NAME)
    if files is None:
        return 2
    from tpu_estimator_compat.tools.reports.terminal import are_colors_shown

    run = _Run(arguments.write, arguments.color or are_colors_shown())
    for file in files:
        run.migrate(file)
    return run.finish(len(files))


class _Run:
    def __init__(self, write: bool, color: bool):
        self._write = write
        self._color = color
        self._changed = 0
        self._mended = 0
        self._left: list[ScanFinding] = []

    def migrate(self, file: str) -> None:
        from tpu_estimator_compat.old_names.legacy.notebook_cells import NotANotebook, is_notebook
        from tpu_estimator_compat.tools.migrate import codemod, difference, notebooks
        from tpu_estimator_compat.tools.scan import CannotRead, read, unreadable

        rewritten = notebooks.migrate_notebook if is_notebook(file) else codemod.migrate_text
        try:
            source = read(file)
            migration = rewritten(source.text, file)
        except (CannotRead, NotANotebook) as error:
            self._left.append(unreadable(file, error))
            return
        self._left += migration.report(written=self._write)
        if migration.after == migration.before:
            return
        if not self._write:
            print(difference.unified(source.text, migration.after, file, self._color), end="")
        elif not self._replace(file, source, migration):
            return
        self._changed += 1
        self._mended += migration.mended

    def _replace(self, file: str, source: FileText, migration: Rewritten) -> bool:
        from tpu_estimator_compat.tools.migrate import writing
        from tpu_estimator_compat.tools.scan import unreadable

        try:
            writing.write(file, source, migration.after)
        except OSError as error:
            said = OSError(f"The file cannot be written: {error.strerror or error}")
            self._left.append(unreadable(file, said))
            return False
        print(f"Rewrote {file}")
        return True

    def finish(self, files: int) -> int:
        from tpu_estimator_compat.tools.scan import report

        for title, hard in (("To be looked at:", False), ("To be done by hand:", True)):
            shown = [f for f in self._left if f.status.needs_a_person is hard]
            if shown:
                table = report.table(shown, scan_command.width(), color=self._color)
                print(f"\n{title}\n{table}")
        undone = len([f for f in self._left if f.status.needs_a_person])
        done = "changed" if self._write else "to change"
        print(
            f"\n{report.searched(self._left, files)}, {self._changed} {done}: "
            f"{report.counted(self._mended, 'finding')} rewritten, {undone} left to a person."
        )
        if self._changed and not self._write:
            print("Nothing is written yet: add --write for that.")
        return report.exit_status(self._left)
