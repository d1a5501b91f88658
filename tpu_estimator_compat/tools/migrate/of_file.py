"""Migrates one file without writing it: the work of a child process."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.old_names.legacy.notebook_cells import NotANotebook, is_notebook
from tpu_estimator_compat.tools.migrate import difference
from tpu_estimator_compat.tools.migrate.codemod import migrate_text
from tpu_estimator_compat.tools.migrate.notebooks import migrate_notebook
from tpu_estimator_compat.tools.migrate.writing import Rewriting
from tpu_estimator_compat.tools.scan import CannotRead, read


def of_file(file: str, written: bool) -> Rewriting:
    """Migrates a file in memory, or raises CannotRead; the report has new lines if `written`."""
    source = read(file, to_write=True)
    try:
        migrate = migrate_notebook if is_notebook(file) else migrate_text
        migration = migrate(source.text, file)
    except NotANotebook as error:
        raise CannotRead(str(error)) from error
    after = migration.after
    dataclasses.replace(source, text=after).check()
    lines = difference.lines(source.text, after, file)
    return Rewriting(source, after, migration.report(written), migration.mended, lines)
