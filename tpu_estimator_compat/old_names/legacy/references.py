"""A module's references to TensorFlow: imports, and attribute chains through aliases.

It also finds builtins of Python 2 that the module neither binds nor tests for. Names are resolved
by Python's scopes, but not by order: a name that is bound twice refers to both values. What comes
by another module is left open: the path `..a.b:.tf.layers` is `tf.layers` of the module `..a.b`.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import re
from collections.abc import Collection
from typing import Any

from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.scopes import (
    ROOTS,
    Scope,
    ScopedVisitor,
    Scopes,
    is_followed,
)
from tpu_estimator_compat.old_names.legacy.table import public

PYTHON_2 = "__builtin__"
"""Prefix of the paths of Python 2's builtins and dict methods."""

LIKE_TENSORFLOW = re.compile(r"(tf|tensorflow)(_?v?[12])?|v1")
"""Matches names that modules give to TensorFlow."""

_DOTTED = re.compile(r"(tensorflow|tensorflow_estimator)(\.\w+)+")


class Form(enum.Enum):
    """The syntactic form of a reference."""

    IMPORT = "import a.b"
    FROM = "from a import b"
    STAR = "from a import *"
    ATTRIBUTE = "alias.b.c"
    GETATTR = 'getattr(alias, "b")'
    STRING = '"tensorflow.a.b" as an argument'
    BUILTIN = "xrange"
    METHOD = "x.iteritems()"


@dataclasses.dataclass(frozen=True)
class Reference:
    """A reference to a name of TensorFlow, or of Python 2, in a module.

    Attributes:
      path: the full path, from `tensorflow` on: `tensorflow.compat.v1.layers.dense`.
      node: the `ast.alias`, `ast.Attribute`, `ast.Call` or `ast.Constant`.
      statement: the import statement; for other forms, the node.
      base: the path of the alias that starts the chain; for an import, the whole path.
      imported: whether an import statement binds that alias, not an assignment.
      bare: in another module, which imports that alias, the meaning of `tensorflow`.
    """

    path: str
    form: Form
    node: ast.alias | ast.expr
    statement: ast.AST
    base: str
    imported: bool = True
    bare: Any = None

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def is_open(self) -> bool:
        return ":" in self.path


def references(tree: ast.Module) -> list[Reference]:
    """All references to TensorFlow and Python 2 in a module, in the order of its lines."""
    return [reference for reference in read(tree)[0] if not reference.is_open]


def read(
    tree: ast.Module, near: Collection[str] = ()
) -> tuple[list[Reference], dict[str, list[str]]]:
    """A module's references, also open ones, and the paths of the names that it binds by imports.

    Open are those to modules below the top-level names `near`, those by relative imports, and those
    whose names are like TensorFlow's.
    """
    scopes = Scopes()
    scopes.visit(tree)
    collector = _Collector(scopes, near)
    collector.visit(tree)
    found = sorted(collector.found, key=lambda r: (r.line, r.node.col_offset))
    return found, collector.names(tree)


class _Collector(ScopedVisitor):
    def __init__(self, scopes: Scopes, near: Collection[str]) -> None:
        super().__init__()
        self.found: list[Reference] = []
        self._near = near
        module = next(iter(scopes.by_node.values()))
        self._given = [path for path in module.bindings.get("*", ()) if isinstance(path, str)]
        self._scopes = scopes.by_node
        self._resolving: set[tuple[int, str]] = set()
        self._asked = 0  # depth of nested tests for the Python version
        self._methods = {node.name for node in scopes.by_node if isinstance(node, ast.FunctionDef)}

    def enter(self, node: ast.AST) -> Scope:
        return self._scopes[node]

    def names(self, tree: ast.Module) -> dict[str, list[str]]:
        """The paths of the names that the module binds; under `*` those of `import *`."""
        module = self._scopes[tree]
        bound = {name: self._bound_to(name, module) for name in module.bindings}
        paths = {name: [p for p, _ in known if self._is_near(p)] for name, known in bound.items()}
        return {name: found for name, found in paths.items() if found}

    def _is_near(self, path: str) -> bool:
        """Whether a path may lead to TensorFlow."""
        module, is_open, names = path.partition(":")
        top = module.partition(".")[0]
        near = not is_open or not top or top in self._near
        return near or any(map(LIKE_TENSORFLOW.fullmatch, names.split(".")))

    def _paths(self, node: ast.expr, scope: Scope) -> list[tuple[str, str, bool]]:
        """Paths that a chain may refer to, each with its base, and whether that is imported."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return []
        known = self._bound_to(node.id, scope)
        return [(".".join([base, *attributes]), base, imported) for base, imported in known]

    def _bound_to(self, name: str, scope: Scope) -> list[tuple[str, bool]]:
        home = scope.home(name)
        if home is None:
            given = () if hasattr(builtins, name) else self._given
            return [(f"{path}.{name}", True) for path in given]
        # `tf = tf.compat.v1` refers to tf itself: the second lookup returns the import.
        key = (id(home), name)
        known = set()
        for value in home.bindings[name]:
            if isinstance(value, str):
                known.add((value, True))
            elif value is not None and key not in self._resolving:
                self._resolving.add(key)
                known.update((path, False) for path, _, _ in self._paths(value, home))
                self._resolving.discard(key)
        return sorted(known)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] in ROOTS:
                self._add(alias.name, Form.IMPORT, alias, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if not is_followed(node):
            return
        for alias in node.names:
            if alias.name == "*":
                self._add(str(node.module), Form.STAR, alias, node)
            else:
                self._add(f"{node.module}.{alias.name}", Form.FROM, alias, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        paths = self._paths(node, self.scope)
        for path, base, imported in paths:
            if self._is_near(path):
                self.found.append(Reference(path, Form.ATTRIBUTE, node, node, base, imported))
        if not paths:
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in python2.NAMES and not self._asked and self.scope.home(node.id) is None:
            self._add(f"{PYTHON_2}.{node.id}", Form.BUILTIN, node, node)

    def visit_Try(self, node: ast.Try) -> None:
        caught = [ast.unparse(handler.type) if handler.type else "" for handler in node.handlers]
        asks = any(not text or "NameError" in text or "Exception" in text for text in caught)
        self._asked += asks
        for statement in node.body:
            self.visit(statement)
        self._asked -= asks
        for other in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(other)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        asks = _asks_for_python(node.test)
        self._asked += asks
        self.generic_visit(node)
        self._asked -= asks

    visit_IfExp = visit_If

    def visit_Call(self, node: ast.Call) -> None:
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        for value in values:
            match value:
                case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text):
                    self._add(text, Form.STRING, value, value)
        match node:
            case ast.Call(ast.Attribute(attr=name), [], []) if (
                name in python2.METHODS and name not in self._methods
            ):
                self._add(f"{PYTHON_2}.dict.{name}", Form.METHOD, node.func, node)
            case ast.Call(ast.Name("getattr"), [target, ast.Constant(str(name)), *_]):
                for path, base, imported in self._paths(target, self.scope):
                    full = f"{path}.{name}"
                    if self._is_near(full):
                        self.found.append(Reference(full, Form.GETATTR, node, node, base, imported))
        self.generic_visit(node)

    def _add(self, path: str, form: Form, node: ast.alias | ast.expr, statement: ast.AST) -> None:
        path = public(path)
        self.found.append(Reference(path, form, node, statement, path))


def _asks_for_python(test: ast.expr) -> bool:
    names = {"PY2", "PY3", "version_info"}
    used = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test))
    return not names.isdisjoint(used)
