"""A module's references to TensorFlow: imports, and attribute chains through aliases.

It also finds builtins of Python 2 that the module neither binds nor tests for. Names are resolved
by Python's scopes, but not by order: a name that is bound twice refers to both values.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import re
from collections.abc import Callable, Iterable
from typing import Any

from tpu_estimator_compat.old_names.legacy.python_numpy import python2
from tpu_estimator_compat.old_names.legacy.table import public

ROOTS = ("tensorflow", "tensorflow_core", "tensorflow_estimator", "tpu_estimator_compat")
"""Packages whose names are tracked."""

PYTHON_2 = "__builtin__"
"""Prefix of the paths of Python 2's builtins and dict methods."""

_DOTTED = re.compile(r"(tensorflow|tensorflow_estimator)(\.\w+)+")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


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
    """

    path: str
    form: Form
    node: ast.alias | ast.expr
    statement: ast.AST
    base: str
    imported: bool = True

    @property
    def line(self) -> int:
        return self.node.lineno


def references(tree: ast.Module) -> list[Reference]:
    """All references to TensorFlow and Python 2 in a module, in the order of its lines."""
    scopes = _Scopes()
    scopes.visit(tree)
    collector = _Collector(scopes)
    collector.visit(tree)
    return sorted(collector.found, key=lambda r: (r.line, r.node.col_offset))


def bound_names(tree: ast.Module) -> set[str]:
    """All names that the module binds, in any scope."""
    scopes = _Scopes()
    scopes.visit(tree)
    return set().union(*(scope.bindings for scope in scopes.by_node.values()))


@dataclasses.dataclass
class _Scope:
    """The bindings in a function, class, comprehension or module.

    A binding is a path, an expression that may be a path, or None for anything else.
    """

    parent: _Scope | None
    is_class: bool = False
    bindings: dict[str, list[str | ast.expr | None]] = dataclasses.field(default_factory=dict)
    elsewhere: dict[str, _Scope] = dataclasses.field(default_factory=dict)

    def bind(self, name: str, value: str | ast.expr | None) -> None:
        owner = self.elsewhere.get(name, self)
        owner.bindings.setdefault(name, []).append(value)

    def home(self, name: str) -> _Scope | None:
        scope: _Scope | None = self.elsewhere.get(name, self)
        while scope is not None:
            if name in scope.bindings and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None


class _ScopedVisitor:
    """Visits a module, with `self.scope` as the scope of the current node.

    Like `ast.NodeVisitor`, but in a third of the time: `scan` should read 100 files a second.
    """

    scope: _Scope

    def __init__(self) -> None:
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {
            getattr(ast, name.removeprefix("visit_")): getattr(self, name)
            for name in dir(self)
            if name.startswith("visit_")
        }
        self._visitors |= dict.fromkeys(_FUNCTIONS, self._visit_function)
        self._visitors |= dict.fromkeys(_COMPREHENSIONS, self._visit_comprehension)

    def enter(self, node: ast.AST) -> _Scope:
        raise NotImplementedError

    def visit(self, node: ast.AST) -> None:
        visitor = self._visitors.get(type(node))
        if visitor is None:
            self.generic_visit(node)
        else:
            visitor(node)

    def generic_visit(self, node: ast.AST) -> None:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST) and value._fields:
                self.visit(value)

    def visit_Module(self, node: ast.Module) -> None:
        self.scope = self.enter(node)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outside)
        self._within(node, node.body)

    def _visit_comprehension(self, node: ast.expr) -> None:
        self._within(node, ast.iter_child_nodes(node))

    def _within(self, node: ast.AST, inside: Iterable[ast.AST]) -> None:
        outer, self.scope = self.scope, self.enter(node)
        for child in inside:
            self.visit(child)
        self.scope = outer

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Visits defaults, decorators and annotations in the outer scope, the body in a new one."""
        arguments = node.args
        outside: list[ast.AST | None] = [*arguments.defaults, *arguments.kw_defaults]
        outside += [argument.annotation for argument in _parameters(arguments)]
        if not isinstance(node, ast.Lambda):
            outside += [*node.decorator_list, node.returns]
        for child in outside:
            if child is not None:
                self.visit(child)
        self._within(node, [node.body] if isinstance(node, ast.Lambda) else node.body)


class _Scopes(_ScopedVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.by_node: dict[ast.AST, _Scope] = {}
        self.scope = _Scope(None)

    def enter(self, node: ast.AST) -> _Scope:
        parent = None if isinstance(node, ast.Module) else self.scope
        scope = self.by_node[node] = _Scope(parent, isinstance(node, ast.ClassDef))
        if isinstance(node, _FUNCTIONS):
            for argument in _parameters(node.args):
                scope.bind(argument.arg, None)
        return scope

    def visit_Global(self, node: ast.Global) -> None:
        module = self.scope
        while module.parent is not None:
            module = module.parent
        self.scope.elsewhere.update(dict.fromkeys(node.names, module))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        around = self.scope.parent
        assert around is not None  # Python refuses nonlocal at module level
        for name in node.names:
            self.scope.elsewhere[name] = around.home(name) or around

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):
            self.scope.bind(node.name, None)
        super()._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.bind(node.name, None)
        super().visit_ClassDef(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            path = public(alias.name if alias.asname else root)
            self.scope.bind(alias.asname or root, path if root in ROOTS else None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            ours = _is_followed(node) and alias.name != "*"
            path = public(f"{node.module}.{alias.name}") if ours else None
            self.scope.bind(alias.asname or alias.name, path)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._assign(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._assign(node.target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            is_chain = isinstance(value, ast.Name | ast.Attribute)
            self.scope.bind(target.id, value if is_chain else None)
        else:
            self.visit(target)

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.scope.bind(node.id, None)

    def visit_MatchAs(self, node: ast.MatchAs | ast.ExceptHandler) -> None:
        if node.name:
            self.scope.bind(node.name, None)
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs


class _Collector(_ScopedVisitor):
    def __init__(self, scopes: _Scopes) -> None:
        super().__init__()
        self.found: list[Reference] = []
        self._scopes = scopes.by_node
        self._resolving: set[tuple[int, str]] = set()
        self._asked = 0  # depth of nested tests for the Python version
        self._methods = {node.name for node in scopes.by_node if isinstance(node, ast.FunctionDef)}

    def enter(self, node: ast.AST) -> _Scope:
        return self._scopes[node]

    def _paths(self, node: ast.expr, scope: _Scope) -> list[tuple[str, str, bool]]:
        """Paths that a chain may refer to, each with its base, and whether that is imported."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return []
        known = self._bound_to(node.id, scope)
        return [(".".join([base, *attributes]), base, imported) for base, imported in known]

    def _bound_to(self, name: str, scope: _Scope) -> list[tuple[str, bool]]:
        home = scope.home(name)
        if home is None:
            return []
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
        if not _is_followed(node):
            return
        for alias in node.names:
            if alias.name == "*":
                self._add(str(node.module), Form.STAR, alias, node)
            else:
                self._add(f"{node.module}.{alias.name}", Form.FROM, alias, node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        paths = self._paths(node, self.scope)
        for path, base, imported in paths:
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
                    self.found.append(Reference(full, Form.GETATTR, node, node, base, imported))
        self.generic_visit(node)

    def _add(self, path: str, form: Form, node: ast.alias | ast.expr, statement: ast.AST) -> None:
        path = public(path)
        self.found.append(Reference(path, form, node, statement, path))


def _is_followed(node: ast.ImportFrom) -> bool:
    return node.level == 0 and (node.module or "").partition(".")[0] in ROOTS


def _asks_for_python(test: ast.expr) -> bool:
    names = {"PY2", "PY3", "version_info"}
    used = (getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(test))
    return not names.isdisjoint(used)


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [a for a in (arguments.vararg, arguments.kwarg) if a]
