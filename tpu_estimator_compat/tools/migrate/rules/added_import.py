"""Imports of names that other rules have written.

`from tpu_estimator_compat import v1`, for modules whose `tf` stays TensorFlow 2, and
`import functools`.
"""

from __future__ import annotations

import libcst as cst
from libcst import matchers

from tpu_estimator_compat.tools.migrate.dotted import dotted
from tpu_estimator_compat.tools.migrate.facts import Facts, Span

_IMPORT = matchers.SimpleStatementLine(body=[matchers.Import() | matchers.ImportFrom()])
_FUTURE = matchers.SimpleStatementLine(
    body=[matchers.ImportFrom(module=matchers.Name("__future__"))]
)
_DOCSTRING = matchers.SimpleStatementLine(
    body=[matchers.Expr(matchers.SimpleString() | matchers.ConcatenatedString())]
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
