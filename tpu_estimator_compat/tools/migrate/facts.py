"""Facts about a module for the rules: the scan's verdicts, and the aliases that will mean v1."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
from typing import Any

import libcst as cst

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, meaning
from tpu_estimator_compat.old_names.legacy.references import Form, Reference, bound_names
from tpu_estimator_compat.tools.scan.module import Module, column
from tpu_estimator_compat.tools.scan.verdict import INTERNAL, V1, Verdict, verdict

Position = tuple[int, int]
"""Line from 1, column in characters from 0: as libcst counts."""

Span = tuple[Position, Position]

_CHAINS = (Form.ATTRIBUTE, Form.GETATTR)


class Facts:
    """The state that the rules share."""

    def __init__(self, text: str, module: Module):
        self.module = module
        self._lines = re.split(r"\r\n|\r|\n", text)
        ours = V1.partition(".")[0]
        self.references = [
            (reference, said)
            for reference, said in module.references
            if reference.path.partition(".")[0] != ours  # these are migrated already
        ]
        self.verdicts: dict[int, Verdict | None] = {
            id(reference): said for reference, said in self.references
        }
        self._used_through = {
            reference.base
            for reference, said in self.references
            if said is not None and said.target and reference.form in _CHAINS and reference.imported
        }
        self.v1_name, self.has_v1 = self._name_of_v1()
        self.uses_v1 = False
        """Whether a rule has written `v1_name`, so that it must be imported."""
        self.uses_functools = False
        """Whether a rule has written `functools`, so that it must be imported."""

    def span(self, node: ast.AST) -> Span:
        """The span of a node of `ast`, as libcst counts."""
        at: Any = node
        return (
            (at.lineno, column(self._lines, at.lineno, at.col_offset)),
            (at.end_lineno, column(self._lines, at.end_lineno, at.end_col_offset)),
        )

    def start(self, node: ast.AST) -> Position:
        return self.span(node)[0]

    def new_path(self, reference: Reference) -> str | None:
        """The path below `tpu_estimator_compat.v1` to import instead; None to leave the import."""
        said = self.verdicts[id(reference)]
        if said is not None and said.target is not None:
            return said.target
        if said is not None and reference.path != "tensorflow":
            return None
        if self._can_move(reference.path) and self._must_move(reference.path):
            return unmoved(reference.path, self.module.bare)
        return None

    def may_move(self, reference: Reference) -> bool:
        """Whether a living name can move to `tpu_estimator_compat.v1` with its statement."""
        alive = self.verdicts[id(reference)] is None
        return alive and self._can_move(reference.path) and not _is_internal(reference.path)

    def alias_moves(self, chain: Reference) -> bool:
        """Whether the first name of a chain will mean the same path of v1."""
        if chain.base == "tensorflow_estimator":
            return False
        own = verdict(dataclasses.replace(chain, path=chain.base), self.module.bare)
        if own is not None and own.target is not None:
            return True  # the import or assignment is rewritten itself
        if not self._can_move(chain.base):
            return False
        # In a module of TensorFlow 1, assigned values come from a root that moves to v1.
        from_root = not _is_internal(chain.base) and ".compat.v2." not in f"{chain.base}."
        return chain.imported or (self.module.bare is Dialect.V1 and from_root)

    def _can_move(self, path: str) -> bool:
        if path.partition(".")[0] != "tensorflow":
            return False
        return _is_internal(path) or meaning(path, self.module.bare)[0] is Dialect.V1

    def _must_move(self, path: str) -> bool:
        """Whether a path is the root, in a module of TensorFlow 1, or leads to dead names."""
        is_root = not meaning(path, self.module.bare)[1]
        return path in self._used_through or (is_root and self.module.bare is Dialect.V1)

    def _name_of_v1(self) -> tuple[str, bool]:
        """The module's name for `tpu_estimator_compat.v1`, and whether it is imported already."""
        for statement in self.module.source.tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == V1.partition(".")[0]:
                for alias in statement.names:
                    if alias.name == "v1":
                        return alias.asname or alias.name, True
        tree = self.module.source.tree
        taken = bound_names(tree) | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        numbered = (f"tf_v1_{number}" for number in itertools.count(2))
        return next(n for n in itertools.chain(["v1", "tf_v1"], numbered) if n not in taken), False


def _is_internal(path: str) -> bool:
    return path.split(".")[1:2] != [] and path.split(".")[1] in INTERNAL


def unmoved(path: str, bare: Dialect) -> str:
    """The path of the same name in `tpu_estimator_compat.v1`.

    >>> unmoved("tensorflow.compat.v1.nn", Dialect.V2)
    'tpu_estimator_compat.v1.nn'
    """
    name = meaning(path, bare)[1]
    return f"{V1}.{name}" if name else V1


def dotted(path: str) -> cst.Name | cst.Attribute:
    """The node of a dotted name."""
    first, *others = path.split(".")
    name: cst.Name | cst.Attribute = cst.Name(first)
    return functools.reduce(lambda n, part: cst.Attribute(n, cst.Name(part)), others, name)
