"""Rewrites names in expressions.

`tf.contrib.tpu.TPUConfig` becomes `tf.estimator.tpu.TPUConfig` where `tf` becomes
`tpu_estimator_compat.v1`, and `v1.estimator.tpu.TPUConfig` where it stays TensorFlow 2. Of Python
2, `xrange(n)` becomes `range(n)`, and `x.iteritems()` becomes `x.items()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tpu_estimator_compat.old_names.legacy.dialect import meaning
from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.old_names.legacy.scopes import bound_names
from tpu_estimator_compat.tools.migrate.facts import Edit, Facts
from tpu_estimator_compat.tools.scan.verdict import V1, Verdict


def chains(facts: Facts) -> Iterator[Edit]:
    """Rewrites chains of attributes whose name has moved."""
    for reference, said in facts.references:
        if reference.form is Form.ATTRIBUTE and said is not None:
            yield from _chain(facts, reference, said)


def _chain(facts: Facts, reference: Reference, said: Verdict) -> Iterator[Edit]:
    """Replaces the start of a chain; old and new path share the rest."""
    target = said.target or ""
    moves = facts.alias_moves(reference) and not said.of_2
    moved_row = said.row is not None and bool(said.row.move_to)
    is_root = not meaning(reference.base, facts.module.bare)[1]
    if not target.startswith(f"{V1}.") or (moves and not (moved_row and is_root)):
        return
    parts, name = reference.path.split("."), said.name.split(".")
    ends = [reference.base.count(".") + 1]
    if name[0] == "tf":
        ends.append(len(parts) - len(name) + 1)
    if moved_row and said.row is not None:
        ends.append(len(parts) - len(name) + said.row.name.count(".") + 1)
    following = len(parts) - max(ends)
    node = _start(reference.node, following)
    alias = _start(reference.node, len(parts) - ends[0])
    first = ast.unparse(alias) if moves else facts.v1_name
    new = target.split(".")[2:]
    written = ".".join([first, *new[: len(new) - following]])
    # Before Python 3.12, positions within f-strings are wrong; comments must not be lost.
    old = "".join(c for c in facts.written(node) if c not in " \t\r\n\\()")
    if old == ast.unparse(node) != written:
        yield Edit(*facts.span(node), written, "v1" if first == facts.v1_name else "")


def _start(node: ast.AST, following: int) -> ast.AST:
    """A chain without the names that follow."""
    for _ in range(following):
        assert isinstance(node, ast.Attribute)
        node = node.value
    return node


def of_python2(facts: Facts) -> Iterator[Edit]:
    """Rewrites builtins of Python 2, and methods of its dicts."""
    tree = facts.module.source.tree
    imports = [a for s in tree.body if isinstance(s, ast.Import) for a in s.names]
    has_functools = any(a.name == "functools" and not a.asname for a in imports)
    bound = bound_names(tree) - ({"functools"} if has_functools else set())
    for reference, _ in facts.references:
        name = reference.path.rpartition(".")[2]
        start, end = facts.span(reference.node)
        if reference.form is Form.METHOD:
            new, start = python2.METHODS[name], end - len(name)
        elif reference.form is Form.BUILTIN:
            new = python2.NAMES[name]
            if new.partition(".")[0] in bound:  # the name means something else
                continue
        else:
            continue
        adds = not has_functools and new.startswith("functools.")
        if facts.text[start:end] == name:
            yield Edit(start, end, new, "functools" if adds else "")
