"""Rewrites statements that import, and adds imports of names that other rules have written.

`import tensorflow as tf` becomes `import tpu_estimator_compat.v1 as tf`, and
`from tensorflow.contrib import tpu` becomes `from tpu_estimator_compat.v1.contrib import tpu`, in
several statements where some of the names stay, or go to several modules. `v1` is imported for
modules whose `tf` stays TensorFlow 2.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator, Sequence

from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.tools.migrate.facts import Edit, Facts, unmoved
from tpu_estimator_compat.tools.scan.verdict import V1

_NEWLINE = re.compile(r"\r\n|\r|\n")
_DOT = r"[\s\\]*\.[\s\\]*"


@dataclasses.dataclass(frozen=True)
class _Name:
    """An imported name, and the module to import it from; None leaves the import."""

    alias: ast.alias
    module: str | None = None
    new: str = ""

    def __str__(self) -> str:
        new = self.alias.name if self.module is None else self.new
        bound = self.alias.asname or self.alias.name
        return f"{new} as {bound}" if self.alias.asname or new != bound else new


def plain(facts: Facts) -> Iterator[Edit]:
    """Rewrites the modules of `import` statements; the names that they bind stay."""
    unaliased: list[tuple[ast.alias, str | None]] = []
    for reference, _ in facts.references:
        alias = reference.node
        if not isinstance(alias, ast.alias) or reference.form is not Form.IMPORT:
            continue
        path = facts.new_path(reference)
        root = reference.path.partition(".")[0]
        if alias.asname is None and root == "tensorflow":
            unaliased.append((alias, path))
        elif path is not None:
            yield _renamed(facts, alias, path if alias.asname else V1, root)
    # Each `import tensorflow.a.b` binds the name `tensorflow`: all of them move together.
    if any(path for _, path in unaliased):
        is_v1 = facts.module.bare is Dialect.V1
        new = (V1, "tensorflow") if is_v1 else ("tensorflow", "")
        for alias, path in unaliased:
            if path or is_v1:
                yield _renamed(facts, alias, *new)


def _renamed(facts: Facts, alias: ast.alias, path: str, bound: str) -> Edit:
    """An alias with another path; it binds `bound`, unless it says itself what it binds."""
    start, _ = facts.span(alias)
    old = _dotted(alias.name).match(facts.text, start)
    assert old is not None
    return Edit(start, old.end(), f"{path} as {bound}" if bound and not alias.asname else path)


def _dotted(path: str) -> re.Pattern[str]:
    """A pattern of a path, with blanks and ends of lines around its dots."""
    return re.compile(_DOT.join(map(re.escape, path.split("."))))


def of_names(facts: Facts) -> Iterator[Edit]:
    """Rewrites `from` imports."""
    by_statement: dict[ast.AST, list[Reference]] = {}
    for reference, _ in facts.references:
        if reference.form is Form.FROM:
            by_statement.setdefault(reference.statement, []).append(reference)
    for statement, references in by_statement.items():
        assert isinstance(statement, ast.ImportFrom)
        names = _names(references, facts)
        modules = list(dict.fromkeys(name.module for name in names))
        if modules == [None]:
            continue
        if len(modules) == 1:
            yield from _moved(facts, statement, str(modules[0]), names)
        elif "#" not in facts.written(statement):  # comments may belong to any of the parts
            parts = (
                f"from {module or statement.module} import "
                + ", ".join(str(name) for name in names if name.module == module)
                for module in modules
            )
            yield Edit(*facts.span(statement), _between(facts, statement).join(parts))


def _moved(
    facts: Facts, statement: ast.ImportFrom, module: str, names: Sequence[_Name]
) -> Iterator[Edit]:
    """A statement with another module; all else in it stays, comments too."""
    start, _ = facts.span(statement)
    old = _dotted(statement.module or "").search(facts.text, start + len("from"))
    assert old is not None
    yield Edit(*old.span(), module)
    for name in names:
        if name.new != name.alias.name:
            start, _ = facts.span(name.alias)
            new = name.new if name.alias.asname else str(name)
            yield Edit(start, start + len(name.alias.name), new)


def _between(facts: Facts, statement: ast.ImportFrom) -> str:
    """What stands between the parts of a statement: a line each, if it had its own line."""
    start, end = facts.span(statement)
    before = facts.text[facts.line_start(statement.lineno) : start]
    after = facts.text[end : facts.line_start((statement.end_lineno or 0) + 1)].lstrip(" \t\f")
    alone = not before.strip() and (not after or after[0] in "#\r\n")
    return _newline(facts.text) + before if alone else "; "


def _newline(text: str) -> str:
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


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
    return _name(reference, V1 + said.name.removeprefix("tf"))


def _name(reference: Reference, path: str | None) -> _Name:
    assert isinstance(reference.node, ast.alias)
    if path is None:
        return _Name(reference.node)
    module, _, new = path.rpartition(".")
    return _Name(reference.node, module, new)


def added(facts: Facts, edits: Sequence[Edit]) -> Iterator[Edit]:
    """Imports `functools` first of all, and `v1` after the module's first import of TensorFlow."""
    lines = _lines(facts.module.source.tree)
    start = 1 if lines and _is_docstring(lines[0]) else 0
    while start < len(lines) and _is_import(lines[start], of="__future__"):
        start += 1
    if any(edit.needs == "functools" for edit in edits):
        yield _inserted(facts, lines, start, "import functools")
    uses = [edit.start for edit in edits if edit.needs == "v1"]
    if uses and not facts.has_v1:
        name = "v1" if facts.v1_name == "v1" else f"v1 as {facts.v1_name}"
        place = _place(facts, lines, start, min(uses))
        yield _inserted(facts, lines, place, f"from tpu_estimator_compat import {name}")


def _lines(tree: ast.Module) -> list[list[ast.stmt]]:
    """The statements of a module; those that share a line are together."""
    lines: list[list[ast.stmt]] = []
    for statement in tree.body:
        if lines and statement.lineno == lines[-1][-1].end_lineno:
            lines[-1].append(statement)
        else:
            lines.append([statement])
    return lines


def _place(facts: Facts, lines: Sequence[list[ast.stmt]], start: int, first_use: int) -> int:
    """The index of the line before which `v1` is imported: none before it uses the name."""
    for index, line in enumerate(lines[start:], start):
        if facts.span(line[-1])[1] > first_use:
            break
        if any(map(_imports_tensorflow, line)):
            return index + 1
    while start < len(lines) and _is_import(lines[start]):
        start += 1
    return start


def _imports_tensorflow(statement: ast.stmt) -> bool:
    """Whether a statement imports TensorFlow, within a `try` too, but not in a function."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    imports = (n for n in ast.walk(statement) if isinstance(n, ast.Import | ast.ImportFrom))
    return any("tensorflow" in ast.unparse(found) for found in imports)


def _is_docstring(line: list[ast.stmt]) -> bool:
    match line:
        case [ast.Expr(ast.Constant(str()))]:
            return True
    return False


def _is_import(line: list[ast.stmt], of: str = "") -> bool:
    match line:
        case [ast.ImportFrom(module)]:
            return not of or module == of
        case [ast.Import()]:
            return not of
    return False


def _inserted(facts: Facts, lines: Sequence[list[ast.stmt]], place: int, code: str) -> Edit:
    """A line of code at the place: after the line before it, and so before comments of the next."""
    end = _newline(facts.text)
    if not place:
        first = lines[0][0]
        decorators = getattr(first, "decorator_list", [])
        offset = facts.line_start(min(node.lineno for node in (first, *decorators)))
        return Edit(offset, offset, code + end)
    number = (lines[place - 1][-1].end_lineno or 0) + 1
    while re.match(r"[ \t]+#", facts.line(number)):  # a comment of the block above
        number += 1
    offset = facts.line_start(number)
    is_ended = facts.text[:offset].endswith(("\r", "\n"))
    return Edit(offset, offset, code + end if is_ended else end + code)
