"""Rules for statements that import.

`import tensorflow as tf` becomes `import tpu_estimator_compat.v1 as tf`, and
`from tensorflow.contrib import tpu` becomes `from tpu_estimator_compat.v1.contrib import tpu`, in
several statements where some of the names stay, or go to several modules. Names that other rules
have written are imported: `v1` for modules whose `tf` stays TensorFlow 2, and `functools`.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

import libcst as cst
from libcst import matchers

from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.migrate.facts import Facts, Position, Span, dotted, unmoved
from tpu_estimator_compat.tools.scan.verdict import V1

_IMPORT = matchers.SimpleStatementLine(body=[matchers.Import() | matchers.ImportFrom()])
_FUTURE = matchers.SimpleStatementLine(
    body=[matchers.ImportFrom(module=matchers.Name("__future__"))]
)
_DOCSTRING = matchers.SimpleStatementLine(
    body=[matchers.Expr(matchers.SimpleString() | matchers.ConcatenatedString())]
)


class PlainImports:
    """Rewrites the modules of `import` statements; the names that they bind stay."""

    nodes = (cst.ImportAlias,)

    def __init__(self, facts: Facts):
        self._new: dict[Position, tuple[str, str]] = {}
        is_v1 = facts.module.bare is Dialect.V1
        unaliased = []
        for reference, _ in facts.references:
            if not isinstance(reference.node, ast.alias) or reference.form is not Form.IMPORT:
                continue
            path = facts.new_path(reference)
            root = reference.path.partition(".")[0]
            asname = reference.node.asname
            place = facts.start(reference.node)
            if asname is None and root == "tensorflow":
                unaliased.append((place, path))
            elif path is not None:
                self._new[place] = (path if asname else V1, asname or root)
        # Each `import tensorflow.a.b` binds the name `tensorflow`: all of them move together.
        if any(path for _, path in unaliased):
            new = (V1, "tensorflow") if is_v1 else ("tensorflow", "")
            self._new |= {place: new for place, path in unaliased if path or is_v1}

    def leave(self, node: cst.CSTNode, span: Span) -> cst.CSTNode:
        if span[0] not in self._new:
            return node
        assert isinstance(node, cst.ImportAlias)
        path, bound = self._new[span[0]]
        asname = node.asname
        if asname is None and bound:
            asname = cst.AsName(name=cst.Name(bound))
        return node.with_changes(name=dotted(path), asname=asname)


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


class AddedImport:
    """Imports `v1` after the module's first import of TensorFlow, and `functools` first of all."""

    nodes = (cst.Module,)

    def __init__(self, facts: Facts):
        self._facts = facts

    def leave(self, node: cst.CSTNode, span: Span) -> cst.CSTNode:
        del span
        assert isinstance(node, cst.Module)
        if self._facts.uses_functools:
            start = _start(node)
            added = cst.SimpleStatementLine([cst.Import([cst.ImportAlias(cst.Name("functools"))])])
            node = node.with_changes(body=[*node.body[:start], added, *node.body[start:]])
        if not self._facts.uses_v1 or self._facts.has_v1:
            return node
        name = self._facts.v1_name
        asname = None if name == "v1" else cst.AsName(name=cst.Name(name))
        added = cst.SimpleStatementLine(
            [
                cst.ImportFrom(
                    module=dotted("tpu_estimator_compat"),
                    names=[cst.ImportAlias(cst.Name("v1"), asname=asname)],
                )
            ]
        )
        place = _place(node, name)
        return node.with_changes(body=[*node.body[:place], added, *node.body[place:]])


def _place(module: cst.Module, name: str) -> int:
    """The index of the new statement, before the first statement that uses the name."""
    start = _start(module)
    for index, statement in enumerate(module.body[start:], start):
        if matchers.findall(statement, matchers.Name(name)):
            break
        if _imports_tensorflow(statement):
            return index + 1
    while start < len(module.body) and matchers.matches(module.body[start], _IMPORT):
        start += 1
    return start


def _start(module: cst.Module) -> int:
    """The index of the first statement that an import may precede."""
    start = 0
    if module.body and matchers.matches(module.body[0], _DOCSTRING):
        start = 1
    while start < len(module.body) and matchers.matches(module.body[start], _FUTURE):
        start += 1
    return start


def _imports_tensorflow(statement: cst.CSTNode) -> bool:
    """Whether a statement imports TensorFlow, within a `try` too, but not in a function."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return False
    imports = matchers.findall(statement, matchers.Import() | matchers.ImportFrom())
    return any("tensorflow" in cst.Module([]).code_for_node(found) for found in imports)
