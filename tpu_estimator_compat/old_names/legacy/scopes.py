"""The scopes of a module: what each name is bound to, where Python looks for it."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from tpu_estimator_compat.old_names.legacy.table import public

ROOTS = ("tensorflow", "tensorflow_core", "tensorflow_estimator", "tpu_estimator_compat")
"""Packages whose names are tracked."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_names(tree: ast.Module) -> set[str]:
    """All names that the module binds, in any scope."""
    scopes = Scopes()
    scopes.visit(tree)
    return set().union(*(scope.bindings for scope in scopes.by_node.values()))


@dataclasses.dataclass
class Scope:
    """The bindings in a function, class, comprehension or module.

    A binding is a path, an expression that may be a path, or None for anything else.
    """

    parent: Scope | None
    is_class: bool = False
    bindings: dict[str, list[str | ast.expr | None]] = dataclasses.field(default_factory=dict)
    elsewhere: dict[str, Scope] = dataclasses.field(default_factory=dict)

    def bind(self, name: str, value: str | ast.expr | None) -> None:
        owner = self.elsewhere.get(name, self)
        owner.bindings.setdefault(name, []).append(value)

    def home(self, name: str) -> Scope | None:
        scope: Scope | None = self.elsewhere.get(name, self)
        while scope is not None:
            if name in scope.bindings and (scope is self or not scope.is_class):
                return scope
            scope = scope.parent
        return None


class ScopedVisitor:
    """Visits a module, with `self.scope` as the scope of the current node.

    Like `ast.NodeVisitor`, but in a third of the time: `scan` should read 100 files a second.
    """

    scope: Scope

    def __init__(self) -> None:
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {
            getattr(ast, name.removeprefix("visit_")): getattr(self, name)
            for name in dir(self)
            if name.startswith("visit_")
        }
        self._visitors |= dict.fromkeys(_FUNCTIONS, self._visit_function)
        self._visitors |= dict.fromkeys(_COMPREHENSIONS, self._visit_comprehension)

    def enter(self, node: ast.AST) -> Scope:
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


class Scopes(ScopedVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.by_node: dict[ast.AST, Scope] = {}
        self.scope = Scope(None)

    def enter(self, node: ast.AST) -> Scope:
        parent = None if isinstance(node, ast.Module) else self.scope
        scope = self.by_node[node] = Scope(parent, isinstance(node, ast.ClassDef))
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
            self.scope.bind(alias.asname or root, path if root in ROOTS else f"{path}:")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = f"{'.' * node.level}{node.module or ''}"
        for alias in node.names:
            if alias.name == "*":
                path = None if is_followed(node) else f"{module}:"
            else:
                end = "" if is_followed(node) else ":"
                path = public(f"{module}{end}.{alias.name}")
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


def is_followed(node: ast.ImportFrom) -> bool:
    return node.level == 0 and (node.module or "").partition(".")[0] in ROOTS


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [a for a in (arguments.vararg, arguments.kwarg) if a]
