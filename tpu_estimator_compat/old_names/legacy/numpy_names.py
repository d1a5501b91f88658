"""Names that NumPy dropped, for legacy modules that ask for them (`--numpy-legacy`).

The aliases are those that NumPy's release notes of 1.20 and 2.0 list as expired, and `tostring`,
which 2.3 took from arrays.
"""

from __future__ import annotations

import ast
import copy
import functools
import types
from typing import Any

import numpy as np

from tpu_estimator_compat.old_names.legacy.python_names import Clone

_BUILTIN = {
    **{kind.__name__: kind for kind in (bool, complex, float, int, object, str)},
    "long": int,
    "unicode": str,
}
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "NAN": "nan",
    "NaN": "nan",
    "PINF": "inf",
    "alltrue": "all",
    "cfloat": "complex128",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "string_": "bytes_",
    "trapz": "trapezoid",
    "unicode_": "str_",
}
_HELPER = "__tpu_estimator_compat_tobytes__"


@functools.cache
def numpy() -> types.ModuleType:
    """`numpy` with the names that it dropped; `np.bool` is Python's, as it was."""
    names = {old: getattr(np, new) for old, new in _RENAMED.items()}
    return _Numpy(np, {**names, "NINF": -np.inf})


class _Numpy(Clone):
    def __getattr__(self, name: str) -> Any:
        return _BUILTIN[name] if name in _BUILTIN else super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_BUILTIN})


def mended(tree: ast.Module) -> ast.Module:
    """A copy of a module in which `x.tostring()` is `x.tobytes()` for arrays."""
    to_bytes = _ToBytes()
    copied: ast.Module = to_bytes.visit(copy.deepcopy(tree))
    if to_bytes.found:
        line = ast.parse(f"from {__name__} import tobytes as {_HELPER}").body
        at = _after_future(copied.body)
        copied.body[at:at] = line
    return ast.fix_missing_locations(copied)


def tobytes(value: Any, *args: Any) -> Any:
    """`value.tostring(*args)`, also where the method is gone."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tobytes(*args)
    return value.tostring(*args)


class _ToBytes(ast.NodeTransformer):
    found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(value, "tostring"), args, []):
                self.found = True
                called = ast.Call(ast.Name(_HELPER, ast.Load()), [value, *args], [])
                return ast.copy_location(called, node)
        return node


def _after_future(body: list[ast.stmt]) -> int:
    """The index behind the docstring and imports from `__future__`, where statements may go."""
    for i in range(len(body), 0, -1):
        match body[i - 1]:
            case ast.ImportFrom(module="__future__"):
                return i
    match body:
        case [ast.Expr(ast.Constant()), *_]:
            return 1
    return 0
