"""What the author's source says of one of its lines, "file:line"."""

from __future__ import annotations

import ast
import functools
from typing import Any


@functools.cache
def _nodes(file: str) -> list[Any]:
    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.FunctionDef))]


def _around(place: str, kind: type) -> list[Any]:
    """The nodes of a kind in which a line is, the outer ones first."""
    file, _, line = place.rpartition(":")
    within = (n for n in _nodes(file) if n.lineno <= int(line) <= n.end_lineno)
    return [node for node in within if isinstance(node, kind)]


def assigned_name(place: str) -> str:
    """The variable to which the line assigns; empty if it does not."""
    targets = [node.targets[0] for node in _around(place, ast.Assign)]
    return next((each.id for each in reversed(targets) if isinstance(each, ast.Name)), "")


def function_of(place: str) -> str:
    """The function that the line is in; empty if unknown."""
    return next((node.name for node in reversed(_around(place, ast.FunctionDef))), "")
