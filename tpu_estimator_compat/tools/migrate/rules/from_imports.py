"""`from tensorflow.contrib import tpu` becomes `from tpu_estimator_compat.v1.contrib import tpu`.

Where some of the names stay, or go to several modules, the statement becomes several.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

import libcst as cst

from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.migrate.dotted import dotted
from tpu_estimator_compat.tools.migrate.facts import Facts, Position, Span, unmoved


@dataclasses.dataclass(frozen=True)
class _Name:
    """An imported name, and the module to import it from; None leaves the import."""

    old: str
    module: str | None = None
    new: str = ""


class FromImports:
    nodes = (cst.ImportFrom, cst.SimpleStatementLine)

    def __init__(self, facts: Facts):
        by_statement: dict[ast.AST, list[Reference]] = {}
        for reference, _ in facts.references:
            if reference.form is Form.FROM:
                by_statement.setdefault(reference.statement, []).append(reference)
        self._new: dict[Position, list[_Name]] = {}
        for statement, references in by_statement.items():
            names = _names(references, facts)
            if any(name.module for name in names):
                self._new[facts.start(statement)] = names

    def leave(
        self, node: cst.CSTNode, span: Span
    ) -> cst.CSTNode | cst.FlattenSentinel[cst.BaseSmallStatement | cst.SimpleStatementLine]:
        if isinstance(node, cst.SimpleStatementLine):
            return self._a_line_each(node, span)
        if span[0] not in self._new:
            return node
        assert isinstance(node, cst.ImportFrom)
        assert not isinstance(node.names, cst.ImportStar)
        names = self._new[span[0]]
        modules = list(dict.fromkeys(name.module for name in names))
        if len(modules) == 1:
            aliases = [_renamed(a, n) for a, n in zip(node.names, names, strict=True)]
            return node.with_changes(module=dotted(str(modules[0])), names=aliases)
        if "#" in cst.Module([]).code_for_node(node):
            return node  # its comments may belong to any of the parts
        return cst.FlattenSentinel([_part(node, names, module) for module in modules])

    def _a_line_each(
        self, line: cst.SimpleStatementLine, span: Span
    ) -> cst.CSTNode | cst.FlattenSentinel[cst.BaseSmallStatement | cst.SimpleStatementLine]:
        """Puts the parts of a split statement on separate lines, if it had its own line."""
        parts = [part for part in line.body if isinstance(part, cst.ImportFrom)]
        if span[0] not in self._new or len(parts) < 2 or len(parts) < len(line.body):
            return line
        names = sum(len(p.names) for p in parts if not isinstance(p.names, cst.ImportStar))
        if names != len(self._new[span[0]]):
            return line  # the line had other statements
        last = len(line.body) - 1
        return cst.FlattenSentinel(
            [
                line.with_changes(
                    body=[statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)],
                    leading_lines=line.leading_lines if i == 0 else [],
                    trailing_whitespace=line.trailing_whitespace
                    if i == last
                    else cst.TrailingWhitespace(newline=line.trailing_whitespace.newline),
                )
                for i, statement in enumerate(line.body)
            ]
        )


def _names(references: Sequence[Reference], facts: Facts) -> list[_Name]:
    """The names of a statement with their new modules, as few modules as possible."""
    paths = [facts.new_path(reference) for reference in references]
    names = []
    for reference, path in zip(references, paths, strict=True):
        if path is None and any(paths) and facts.may_move(reference):
            path = unmoved(reference.path, facts.module.bare)
        names.append(_name(reference, path))
    if len({name.module for name in names}) > 1:
        kept = [_in_place(r, n, facts) for r, n in zip(references, names, strict=True)]
        if len({name.module for name in kept}) < len({name.module for name in names}):
            return kept
    return names


def _in_place(reference: Reference, name: _Name, facts: Facts) -> _Name:
    """The name at its old path below v1, not at the path where it moved to."""
    said = facts.verdicts[id(reference)]
    if name.module is None or said is None or said.of_2 or not said.name.startswith("tf."):
        return name
    return _name(reference, "tpu_estimator_compat.v1" + said.name.removeprefix("tf"))


def _name(reference: Reference, path: str | None) -> _Name:
    old = reference.path.rpartition(".")[2]
    if path is None:
        return _Name(old)
    module, _, new = path.rpartition(".")
    return _Name(old, module, new)


def _renamed(alias: cst.ImportAlias, name: _Name) -> cst.ImportAlias:
    if name.module is None or name.new == name.old:
        return alias
    asname = alias.asname or cst.AsName(name=cst.Name(name.old))
    return alias.with_changes(name=cst.Name(name.new), asname=asname)


def _part(node: cst.ImportFrom, names: list[_Name], module: str | None) -> cst.ImportFrom:
    assert not isinstance(node.names, cst.ImportStar)
    aliases = [
        _renamed(alias, name).with_changes(comma=cst.MaybeSentinel.DEFAULT)
        for alias, name in zip(node.names, names, strict=True)
        if name.module == module
    ]
    old = node.module
    assert old is not None
    return node.with_changes(
        module=old if module is None else dotted(module),
        names=aliases,
        lpar=None,
        rpar=None,
        semicolon=cst.MaybeSentinel.DEFAULT,
    )
