"""`import tensorflow as tf` becomes `import tpu_estimator_compat.v1 as tf`."""

from __future__ import annotations

import ast

import libcst as cst

from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.references import Form
from tpu_estimator_compat.tools.migrate.dotted import dotted
from tpu_estimator_compat.tools.migrate.facts import Facts, Position, Span
from tpu_estimator_compat.tools.scan.verdict import V1


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
