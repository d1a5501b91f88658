"""Facts about a module for the rules: the scan's verdicts, and the aliases that will mean v1."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
from typing import Any

from tpu_estimator_compat.old_names.legacy.dialect import Dialect, meaning
from tpu_estimator_compat.old_names.legacy.references import Form, Reference
from tpu_estimator_compat.old_names.legacy.scopes import bound_names
from tpu_estimator_compat.tools.scan.module import Module, column
from tpu_estimator_compat.tools.scan.verdict import INTERNAL, V1, Verdict, verdict

_CHAINS = (Form.ATTRIBUTE, Form.GETATTR)


@dataclasses.dataclass(frozen=True)
class Edit:
    """New text for a part of the module's; `needs` is a name that it uses: "v1" or "functools"."""

    start: int
    end: int
    new: str
    needs: str = ""


class Facts:
    """The facts that the rules share; offsets are in the characters of `text`.

    Args:
      used: paths through which other modules use dead names.
    """

    def __init__(self, module: Module, used: frozenset[str] = frozenset()):
        self.module = module
        self.text = module.source.text
        # Python's line endings; splitlines knows more.
        self._lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", self.text)
        self._starts = list(itertools.accumulate(map(len, self._lines), initial=0))
        ours = V1.partition(".")[0]
        self.references = [
            (reference, said)
            for reference, said in module.references
            if reference.path.partition(".")[0] != ours  # these are migrated already
        ]
        self.verdicts: dict[int, Verdict | None] = {
            id(reference): said for reference, said in self.references
        }
        self._used_through = used.union(
            reference.base
            for reference, said in self.references
            if said is not None and said.target and reference.form in _CHAINS
            if reference.imported and reference.bare is None
        )
        self.v1_name, self.has_v1 = self._name_of_v1()

    def span(self, node: Any) -> tuple[int, int]:
        """The offsets of a node's start and end."""
        return (
            self._offset(node.lineno, node.col_offset),
            self._offset(node.end_lineno, node.end_col_offset),
        )

    def written(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def line_start(self, line: int) -> int:
        """The offset of a line, counted from 1; the text's length for the one after the last."""
        return self._starts[min(line - 1, len(self._lines))]

    def line(self, number: int) -> str:
        return self._lines[number - 1] if number <= len(self._lines) else ""

    def _offset(self, line: int, offset: int) -> int:
        return self.line_start(line) + column(self._lines, line, offset)

    def new_path(self, reference: Reference) -> str | None:
        """The path below `tpu_estimator_compat.v1` to import instead; None to leave the import."""
        said = self.verdicts[id(reference)]
        if said is not None and said.target is not None:
            return said.target
        if said is not None and reference.path != "tensorflow":
            return None
        bare = self.module.bare
        if _can_move(reference.path, bare) and self._must_move(reference.path):
            return unmoved(reference.path, bare)
        return None

    def may_move(self, reference: Reference) -> bool:
        """Whether a living name can move to `tpu_estimator_compat.v1` with its statement."""
        alive = self.verdicts[id(reference)] is None
        can_move = _can_move(reference.path, self.module.bare)
        return alive and can_move and not _is_internal(reference.path)

    def alias_moves(self, chain: Reference) -> bool:
        """Whether what a chain begins with will mean the same path of v1."""
        bare = chain.bare or self.module.bare
        if chain.base == "tensorflow_estimator":
            return False
        own = verdict(dataclasses.replace(chain, path=chain.base), bare)
        if own is not None and own.target is not None:
            return True  # the import or assignment is rewritten itself
        if not _can_move(chain.base, bare):
            return False
        # In a module of TensorFlow 1, assigned values come from a root that moves to v1.
        from_root = not _is_internal(chain.base) and ".compat.v2." not in f"{chain.base}."
        return chain.imported or (bare is Dialect.V1 and from_root)

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


def _can_move(path: str, bare: Dialect) -> bool:
    if path.partition(".")[0] != "tensorflow":
        return False
    return _is_internal(path) or meaning(path, bare)[0] is Dialect.V1


def _is_internal(path: str) -> bool:
    return path.split(".")[1:2] != [] and path.split(".")[1] in INTERNAL


def unmoved(path: str, bare: Dialect) -> str:
    """The path of the same name in `tpu_estimator_compat.v1`.

    >>> unmoved("tensorflow.compat.v1.nn", Dialect.V2)
    'tpu_estimator_compat.v1.nn'
    """
    name = meaning(path, bare)[1]
    return f"{V1}.{name}" if name else V1
