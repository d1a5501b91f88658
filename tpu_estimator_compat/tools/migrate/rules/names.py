"""Rules for names in expressions.

`tf.contrib.tpu.TPUConfig` becomes `tf.estimator.tpu.TPUConfig` where `tf` becomes
`tpu_estimator_compat.v1`, and `v1.estimator.tpu.TPUConfig` where it stays TensorFlow 2. Of Python
2, `xrange(n)` becomes `range(n)`, and `x.iteritems()` becomes `x.items()`.
"""

from __future__ import annotations

import ast

import libcst as cst

from tpu_estimator_compat.old_names.legacy.dialect import meaning
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.references import Form, Reference, bound_names
from tpu_estimator_compat.tools.migrate.facts import Facts, Span, dotted
from tpu_estimator_compat.tools.scan.verdict import V1, Verdict


class Chains:
    """Rewrites chains of attributes whose name has moved."""

    nodes = (cst.Attribute, cst.Name)

    def __init__(self, facts: Facts):
        self._facts = facts
        self._new: dict[Span, tuple[str, str]] = {}
        for reference, said in facts.references:
            if reference.form is not Form.ATTRIBUTE or said is None or said.target is None:
                continue
            if said.target.startswith(f"{V1}."):
                self._plan(reference, said, said.target)

    def _plan(self, reference: Reference, said: Verdict, target: str) -> None:
        """Plans the new start of a chain; old and new path share the rest."""
        moves = self._facts.alias_moves(reference) and not said.of_2
        moved_row = said.row is not None and bool(said.row.move_to)
        is_root = not meaning(reference.base, self._facts.module.bare)[1]
        if moves and not (moved_row and is_root):
            return
        parts, name = reference.path.split("."), said.name.split(".")
        ends = [reference.base.count(".") + 1]
        if name[0] == "tf":
            ends.append(len(parts) - len(name) + 1)
        if moved_row and said.row is not None:
            ends.append(len(parts) - len(name) + said.row.name.count(".") + 1)
        following = len(parts) - max(ends)
        node = reference.node
        for _ in range(following):
            assert isinstance(node, ast.Attribute)
            node = node.value
        first = _first_name(node) if moves else self._facts.v1_name
        new = target.split(".")[2:]
        new = [first, *new[: len(new) - following]]
        old = ast.unparse(node)
        if old != ".".join(new):
            self._new[self._facts.span(node)] = (old, ".".join(new))

    def leave(self, node: cst.CSTNode, span: Span) -> cst.CSTNode:
        assert isinstance(node, cst.Attribute | cst.Name)
        old, new = self._new.get(span, ("", ""))
        # Before Python 3.12, positions within f-strings are wrong.
        if not new or _written(node) != old:
            return node
        if new.partition(".")[0] == self._facts.v1_name:
            self._facts.uses_v1 = True
        return dotted(new).with_changes(lpar=node.lpar, rpar=node.rpar)


def _first_name(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node.id


def _written(node: cst.BaseExpression) -> str:
    """The chain without its blanks; empty if there are comments, which must not be lost."""
    text = cst.Module([]).code_for_node(node.with_changes(lpar=[], rpar=[]))
    return "" if "#" in text else "".join(c for c in text if c not in " \t\r\n\\()")


class Python2:
    """Rewrites builtins of Python 2, and methods of its dicts."""

    nodes = (cst.Name, cst.Attribute)

    def __init__(self, facts: Facts):
        self._facts = facts
        self._new: dict[Span, tuple[str, str]] = {}
        tree = facts.module.source.tree
        imports = [a for s in tree.body if isinstance(s, ast.Import) for a in s.names]
        has_functools = any(a.name == "functools" and not a.asname for a in imports)
        bound = bound_names(tree) - ({"functools"} if has_functools else set())
        self._adds_functools = not has_functools
        for reference, _ in facts.references:
            name = reference.path.rpartition(".")[2]
            if reference.form is Form.METHOD:
                self._new[facts.span(reference.node)] = name, python2.METHODS[name]
            elif reference.form is Form.BUILTIN:
                new = python2.NAMES[name]
                if new.partition(".")[0] not in bound:  # else the name means something else
                    self._new[facts.span(reference.node)] = name, new

    def leave(self, node: cst.CSTNode, span: Span) -> cst.CSTNode:
        old, new = self._new.get(span, ("", ""))
        if isinstance(node, cst.Attribute) and node.attr.value == old:
            return node.with_changes(attr=cst.Name(new))
        # Before Python 3.12, positions within f-strings are wrong.
        if isinstance(node, cst.Name) and node.value == old:
            self._facts.uses_functools |= self._adds_functools and new.startswith("functools.")
            return dotted(new).with_changes(lpar=node.lpar, rpar=node.rpar)
        return node
