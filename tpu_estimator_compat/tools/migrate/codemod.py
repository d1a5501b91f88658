"""Applies the rules to the text of a module, to the cells of a notebook, or to a file."""

from __future__ import annotations

import dataclasses
import difflib
import re
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from tpu_estimator_compat.old_names.legacy.notebooks.cells import (
    NotANotebook,
    Notebook,
    is_notebook,
    unused,
)
from tpu_estimator_compat.tools.migrate import writing
from tpu_estimator_compat.tools.migrate.facts import Facts, Span
from tpu_estimator_compat.tools.migrate.rules import RULES
from tpu_estimator_compat.tools.scan.files import CannotRead, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status
from tpu_estimator_compat.tools.scan.module import parse, placed, scan_text, unparsable

_FORM_FEED = re.compile(r"^([ \t]*)\f([ \t]*)$", re.MULTILINE)
_PREFIX = re.compile(r"[\w.]+\.(?=\w)")
_INSTEAD = "#\ue000"


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


def migrate_text(text: str, file: str) -> Migration:
    """Migrates a module; one that does not parse, or uses no dead name, is not changed."""
    found = scan_text(text, file)
    if all(f.status.is_manual and f.status is not Status.REFUSED for f in found):
        return Migration(text, text, found, found, 0)
    after, failure = _rewritten(text, file)
    still = scan_text(after, file)
    mended = _easy(found) - _easy(still)
    return Migration(text, after, found, [*failure, *map(_by_hand, still)], mended)


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


def of_file(file: str, written: bool) -> writing.Rewriting:
    """Migrates a file in memory, or raises CannotRead; the report has new lines if `written`."""
    source = read(file, to_write=True)
    try:
        migrate = migrate_notebook if is_notebook(file) else migrate_text
        migration = migrate(source.text, file)
    except NotANotebook as error:
        raise CannotRead(str(error)) from error
    after = migration.after
    dataclasses.replace(source, text=after).check()
    lines = writing.difference(source.text, after, file)
    return writing.Rewriting(source, after, migration.report(written), migration.mended, lines)


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


def _rewritten(text: str, file: str) -> tuple[str, list[ScanFinding]]:
    """The new text, or the old one and a finding that says why."""
    module = parse(text)
    source = module.source.text
    instead = unused(_INSTEAD, source)
    given = _FORM_FEED.sub(rf"\1{instead}\2", source)
    try:
        wrapper = MetadataWrapper(cst.parse_module(given), unsafe_skip_copy=True)
    except cst.ParserSyntaxError as error:
        said = f"libcst cannot parse it: {error.message}."
        return text, [ScanFinding(file, error.raw_line, 0, "", Status.BY_HAND, said)]
    if wrapper.module.code != given:
        said = "It has form feeds or line endings that would be lost. Remove them first."
        return text, [ScanFinding(file, 0, 0, "", Status.BY_HAND, said)]
    after = wrapper.visit(_Codemod(Facts(source, module))).code
    after = after.replace(instead, "\f") if given != source else after
    try:
        parse(after)
    except SyntaxError as error:
        return text, [unparsable(error, after, file)]
    return after, []


def _by_hand(finding: ScanFinding) -> ScanFinding:
    if finding.status.is_manual:
        return finding
    where = finding.advice or "Write the same name of tpu_estimator_compat.v1."
    said = f"`migrate` could not rewrite it. {where}"
    return dataclasses.replace(finding, status=Status.BY_HAND, advice=said)


class _Codemod(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, facts: Facts):
        super().__init__()
        self._rules: list[Any] = [rule(facts) for rule in RULES]
        self._nodes = tuple(node for rule in self._rules for node in rule.nodes)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated: Any = super().on_leave(original_node, updated_node)
        if not isinstance(original_node, self._nodes):
            return updated
        span = self._span(original_node)
        for rule in self._rules:
            if isinstance(updated, rule.nodes):
                updated = rule.leave(updated, span)
        return updated

    def _span(self, node: cst.CSTNode) -> Span:
        place: Any = self.get_metadata(PositionProvider, node)
        return (place.start.line, place.start.column), (place.end.line, place.end.column)
