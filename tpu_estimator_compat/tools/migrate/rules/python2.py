"""`xrange(n)` becomes `range(n)`, and `x.iteritems()` becomes `x.items()`."""

from __future__ import annotations

import ast

import libcst as cst

from tpu_estimator_compat.old_names.legacy import python2
from tpu_estimator_compat.old_names.legacy.references import Form, bound_names
from tpu_estimator_compat.tools.migrate.dotted import dotted
from tpu_estimator_compat.tools.migrate.facts import Facts, Span


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
