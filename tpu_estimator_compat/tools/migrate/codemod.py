"""Rewrites a module, the cells of a notebook, or a file; the text of nothing else changes.

Each rule gives edits of the text, at the positions of Python's own parser.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import re
from collections.abc import Collection, Sequence

from tpu_estimator_compat.old_names.legacy.notebooks.cells import (
    NotANotebook,
    Notebook,
    is_notebook,
)
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.migrate import imports, names, writing
from tpu_estimator_compat.tools.migrate.facts import Edit, Facts, unmoved
from tpu_estimator_compat.tools.scan.files import CannotRead, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status
from tpu_estimator_compat.tools.scan.links import ALONE, Links
from tpu_estimator_compat.tools.scan.module import parse, placed, scan_text, unparsable

_PREFIX = re.compile(r"[\w.]+\.(?=\w)")


@dataclasses.dataclass(frozen=True)
class Migration:
    """The result of migrating a module.

    Attributes:
      found: the findings of `scan` in `before`.
      left: the findings to change by hand, with lines of `after`.
    """

    before: str
    after: str
    found: list[ScanFinding]
    left: list[ScanFinding]
    mended: int

    def report(self, written: bool) -> list[ScanFinding]:
        """The findings to change by hand or that differ; lines are the new text's if `written`."""
        differs = [f for f in self.found if f.status is Status.DIFFERS]
        if written:
            moved = _moved(differs, self.before, self.after)
            return sorted([*self.left, *moved])
        return sorted([*_moved(self.left, self.after, self.before), *differs])


def migrate_text(text: str, file: str, links: Links = ALONE) -> Migration:
    """Migrates a module; one that does not parse, or uses no dead name, is not changed."""
    found = scan_text(text, file, links)
    left = all(f.status.is_manual and f.status is not Status.REFUSED for f in found)
    if left and not links.used:
        return Migration(text, text, found, found, 0)
    facts = Facts(parse(text, links), links.used)
    links = _migrated(links, facts)
    after, failure = _rewritten(facts), []
    try:
        parse(after, links)
    except SyntaxError as error:
        after, failure = text, [unparsable(error, after, file)]
    still = scan_text(after, file, links)
    mended = _easy(found) - _easy(still)
    return Migration(text, after, found, [*failure, *map(_by_hand, still)], mended)


def migrate_notebook(text: str, file: str, links: Links = ALONE) -> tuple[str, list[Migration]]:
    """The text with migrated modules, and each's migration; NotANotebook for other files.

    Magics, outputs and all else keep the same bytes.
    """
    notebook = Notebook(text)
    modules = [migrate_text(module, file, links) for module in notebook.modules()]
    return notebook.with_modules([module.after for module in modules]), modules


def of_file(
    near: Collection[str], file: str, written: bool, links: Links = ALONE
) -> writing.Rewriting:
    """Migrates a file in memory, or raises CannotRead; the report has new lines if `written`."""
    parse.cache_clear()  # a large file may need all memory
    links = dataclasses.replace(links, near=near)
    source = read(file, to_write=True)
    if is_notebook(file):
        try:
            after, modules = migrate_notebook(source.text, file, links)
        except NotANotebook as error:
            raise CannotRead(str(error)) from error
        texts = [m.after if written else m.before for m in modules]
        report = [
            f for m, t in zip(modules, texts, strict=True) for f in placed(m.report(written), t)
        ]
    else:
        modules = [migrate_text(source.text, file, links)]
        after, report = modules[0].after, modules[0].report(written)
    dataclasses.replace(source, text=after).check()
    lines = writing.difference(source.text, after, file)
    return writing.Rewriting(source, after, report, sum(m.mended for m in modules), lines)


def _easy(findings: list[ScanFinding]) -> int:
    return len([finding for finding in findings if not finding.status.is_manual])


def _moved(findings: list[ScanFinding], old: str, new: str) -> list[ScanFinding]:
    """The findings of one text, with the lines of another."""
    if not findings or old == new:
        return findings
    lines = {0: 0}
    # Without the parts that rules change, most lines are the same in both.
    before, after = ([_PREFIX.sub("", line) for line in text.split("\n")] for text in (old, new))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        for line in range(start, end):
            lines[line + 1] = min(new_start + line - start, max(new_end - 1, new_start)) + 1
    return [dataclasses.replace(f, line=lines.get(f.line, f.line)) for f in findings]


def _migrated(links: Links, facts: Facts) -> Links:
    """The links to other modules when these are migrated, too."""
    brought, node = {}, ast.Constant(None)
    for start, paths in links.brought.items():
        given = [Reference(p, Form.ATTRIBUTE, node, node, p, bare=bare) for p, bare in paths]
        brought[start] = [
            (unmoved(r.path, r.bare) if facts.alias_moves(r) else r.path, r.bare) for r in given
        ]
    return dataclasses.replace(links, brought=brought)


def _rewritten(facts: Facts) -> str:
    edits = [
        *imports.plain(facts),
        *imports.of_names(facts),
        *names.chains(facts),
        *names.of_python2(facts),
    ]
    return _applied(facts.text, [*imports.added(facts, edits), *edits])


def _applied(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits, except those within the part that another one replaces."""
    parts, end = [], 0
    for edit in sorted(dict.fromkeys(edits), key=lambda edit: (edit.start, edit.end)):
        if edit.start >= end:
            parts += [text[end : edit.start], edit.new]
            end = edit.end
    return "".join([*parts, text[end:]])


def _by_hand(finding: ScanFinding) -> ScanFinding:
    if finding.status.is_manual:
        return finding
    where = finding.advice or "Write the same name of tpu_estimator_compat.v1."
    said = f"`migrate` could not rewrite it. {where}"
    return dataclasses.replace(finding, status=Status.BY_HAND, advice=said)
