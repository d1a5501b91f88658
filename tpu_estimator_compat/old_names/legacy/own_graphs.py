"""Finds the code of a module that runs in an explicit graph: `with tf.Graph().as_default():`.

Sessions and placeholders in that code do not show whether the rest of the module is eager.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def within(tree: ast.Module) -> set[ast.AST]:
    """The nodes in explicit graphs, including functions that only such code calls.

    Sessions with a graph argument, `tf.Session(graph=graph)`, count as well.
    """
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    found = {node for start in _starts(tree) for node in ast.walk(start)}
    while more := [f for f in functions if f not in found and _only_called(tree, f.name, found)]:
        found.update(node for function in more for node in ast.walk(function))
    return found


def _starts(tree: ast.Module) -> Iterator[ast.AST]:
    made = {
        _last(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _is_graph(node.value)
        for target in node.targets
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            of_graph = [_is_entered(item.context_expr, made) for item in node.items]
            if any(of_graph):  # the with's later items and its body
                yield from (item.context_expr for item in node.items[of_graph.index(True) :])
                yield from node.body
        elif isinstance(node, ast.Call) and any(word.arg == "graph" for word in node.keywords):
            yield node.func


def _is_entered(node: ast.expr, made: set[str]) -> bool:
    match node:
        case ast.Call(ast.Attribute(graph, "as_default"), []):
            return _is_graph(graph) or _last(graph) in made
    return False


def _is_graph(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "Graph"


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _only_called(tree: ast.Module, name: str, found: set[ast.AST]) -> bool:
    named = (ast.Name, ast.Attribute)
    uses = [node for node in ast.walk(tree) if isinstance(node, named) and _last(node) == name]
    return bool(uses) and found.issuperset(uses)
