"""Array methods and conversions that NumPy dropped, for legacy modules (`--numpy-legacy`).

Arrays cannot get methods, so calls in the source are rewritten to functions of this module.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import numpy as np

_CALLED = "__tpu_estimator_compat_called__"
_SCALAR = "__tpu_estimator_compat_scalar__"
_KINDS = (complex, float, int)


def _itemset(array: Any, *args: Any) -> None:
    *place, value = args
    if not place:
        array[(0,) * array.ndim] = value if array.size == 1 else array.item()
    elif len(place) == 1 and not isinstance(place[0], tuple):
        array.flat[place[0]] = value
    else:
        array[place[0] if len(place) == 1 else tuple(place)] = value


METHODS: dict[str, tuple[Callable[..., Any], str]] = {
    "itemset": (_itemset, "x[index] = value"),
    "newbyteorder": (
        lambda x, order="S": x.view(x.dtype.newbyteorder(order)),
        "x.view(x.dtype.newbyteorder())",
    ),
    "ptp": (np.ptp, "np.ptp(x)"),
    "tostring": (lambda x, *args: x.tobytes(*args), "x.tobytes()"),
}
"""Method name to (replacement function, code to write today)."""


def mended(tree: ast.Module) -> ast.Module:
    """A copy of a module's tree, with calls rewritten that NumPy dropped."""
    calls = _Calls()
    copied: ast.Module = calls.visit(copy.deepcopy(tree))
    if calls.found:
        names = f"called as {_CALLED}, scalar as {_SCALAR}"
        at = _after_future(copied.body)
        copied.body[at:at] = ast.parse(f"from {__name__} import {names}").body
    return ast.fix_missing_locations(copied)


def called(value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """`value.NAME(...)`, also for methods that arrays lost."""
    if isinstance(value, (np.ndarray, np.generic)) and not hasattr(value, name):
        return METHODS[name][0](value, *args, **kwargs)
    return getattr(value, name)(*args, **kwargs)


def scalar(kind: Any, value: Any) -> Any:
    """`kind(value)`, also for arrays with one element."""
    if isinstance(value, np.ndarray) and value.ndim and value.size == 1 and kind in _KINDS:
        value = value.item()
    return kind(value)


class _Calls(ast.NodeTransformer):
    found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(value, name), args, keywords) if name in METHODS:
                made = ast.Call(_name(_CALLED), [value, ast.Constant(name), *args], keywords)
            case ast.Call(ast.Name(name) as kind, [value], []) if name in {
                each.__name__ for each in _KINDS
            } and not isinstance(value, ast.Starred):
                made = ast.Call(_name(_SCALAR), [kind, value], [])
            case _:
                return node
        self.found = True
        return ast.copy_location(made, node)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _after_future(body: list[ast.stmt]) -> int:
    for i in range(len(body), 0, -1):
        match body[i - 1]:
            case ast.ImportFrom(module="__future__"):
                return i
    match body:
        case [ast.Expr(ast.Constant()), *_]:
            return 1
    return 0
