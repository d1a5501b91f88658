"""Applies the rules to the cells of a notebook."""

from __future__ import annotations

import dataclasses

from tpu_estimator_compat.old_names.legacy.notebook_cells import Notebook
from tpu_estimator_compat.tools.migrate.codemod import Migration, migrate_text
from tpu_estimator_compat.tools.scan import ScanFinding, placed


@dataclasses.dataclass(frozen=True)
class NotebookMigration:
    """The result of migrating a notebook's modules; all else in its file keeps the same bytes."""

    before: str
    after: str
    modules: list[Migration]

    @property
    def mended(self) -> int:
        return sum(module.mended for module in self.modules)

    def report(self, written: bool) -> list[ScanFinding]:
        """As `Migration.report`, with the lines of cells."""
        texts = [m.after if written else m.before for m in self.modules]
        reports = [module.report(written) for module in self.modules]
        return [f for r, t in zip(reports, texts, strict=True) for f in placed(r, t)]


def migrate_notebook(text: str, file: str) -> NotebookMigration:
    """Migrates a notebook, except its magics and outputs; NotANotebook for other files."""
    notebook = Notebook(text)
    modules = [migrate_text(module, file) for module in notebook.modules()]
    after = notebook.with_modules([module.after for module in modules])
    return NotebookMigration(text, after, modules)
