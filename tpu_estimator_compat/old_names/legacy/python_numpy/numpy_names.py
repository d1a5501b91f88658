"""Names and arguments that NumPy dropped, for legacy modules that ask for them (`--numpy-legacy`).

NumPy's release notes of 1.20 to 2.4 list them as expired. Names without an equivalent are left out:
NumPy's own error says what to write. `numpy_methods` has the methods of arrays.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tpu_estimator_compat.old_names.legacy.python_numpy.python_names import Clone

_BUILTIN = {
    **{kind.__name__: kind for kind in (bool, complex, float, int, object, str)},
    "long": int,
    "unicode": str,
}
_RENAMED = {
    "AxisError": "exceptions.AxisError",
    "ComplexWarning": "exceptions.ComplexWarning",
    "DataSource": "lib.npyio.DataSource",
    "Inf": "inf",
    "Infinity": "inf",
    "NAN": "nan",
    "NaN": "nan",
    "PINF": "inf",
    "RankWarning": "exceptions.RankWarning",
    "VisibleDeprecationWarning": "exceptions.VisibleDeprecationWarning",
    "alltrue": "all",
    "bool8": "bool_",
    "byte_bounds": "lib.array_utils.byte_bounds",
    "bytes0": "bytes_",
    "cfloat": "complex128",
    "clongfloat": "clongdouble",
    "compare_chararrays": "char.compare_chararrays",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "int0": "intp",
    "issubsctype": "issubdtype",
    "longcomplex": "clongdouble",
    "longfloat": "longdouble",
    "mat": "asmatrix",
    "object0": "object_",
    "product": "prod",
    "rank": "ndim",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "str0": "str_",
    "string_": "bytes_",
    "trapz": "trapezoid",
    "uint0": "uintp",
    "unicode_": "str_",
    "void0": "void",
}


class _ByType(dict[Any, Any]):
    """A dict that computes the value of each key, for NumPy's dicts by type."""

    def __init__(self, make: Callable[[Any], Any]):
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> Any:
        return self._make(key)


_WRITTEN: dict[str, Any] = {
    "NINF": -np.inf,
    "NZERO": -0.0,
    "PZERO": 0.0,
    "alen": lambda a: len(np.atleast_1d(a)),
    "asfarray": lambda a, dtype=np.float64: np.asarray(
        a, dtype if np.issubdtype(dtype, np.inexact) else np.float64
    ),
    "asscalar": lambda a: np.asarray(a).item(),
    "cast": _ByType(lambda kind: lambda a: np.asarray(a).astype(kind)),
    "fastCopyAndTranspose": lambda a: np.array(a).T.copy(),
    "issctype": lambda rep: (
        isinstance(rep, type | np.dtype) and np.dtype(rep).type is not np.object_
    ),
    "issubclass_": lambda one, other: isinstance(one, type) and issubclass(one, other),
    "msort": lambda a: np.sort(a, axis=0),
    "nbytes": _ByType(lambda kind: np.dtype(kind).itemsize),
    "obj2sctype": lambda rep: np.dtype(rep).type,
    "safe_eval": ast.literal_eval,
    "sctype2char": lambda kind: np.dtype(kind).char,
}

ARGUMENTS: dict[str, dict[str, str | None]] = {
    "array2string": {"style": None},
    "corrcoef": {"bias": None, "ddof": None},
    "histogram": {"normed": "density"},
    "histogram2d": {"normed": "density"},
    "histogramdd": {"normed": "density"},
    "nanpercentile": {"interpolation": "method"},
    "nanquantile": {"interpolation": "method"},
    "percentile": {"interpolation": "method"},
    "quantile": {"interpolation": "method"},
    "reshape": {"newshape": "shape"},
    "save": {"fix_imports": None},
}
"""Maps each function's old arguments to today's; None for arguments that had no effect."""


def _with_arguments(function: Any, today: dict[str, str | None]) -> Any:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = {today.get(name, name): value for name, value in kwargs.items()}
        return function(*args, **{name: value for name, value in given.items() if name})

    return called


_STACKS = ("column_stack", "dstack", "hstack", "stack", "vstack")


def _of_iterator(function: Any) -> Any:
    """Lets a function's first argument be an iterator, which `map(...)` is since Python 3."""

    @functools.wraps(function)
    def called(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        return function([*arrays] if isinstance(arrays, Iterator) else arrays, *args, **kwargs)

    return called


@functools.wraps(np.sum)
def _sum(a: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(a, types.GeneratorType):  # whatever the axis is
        return sum(a)
    return np.sum(a, *args, **kwargs)


@functools.wraps(np.array)
def _array(*args: Any, **kwargs: Any) -> Any:
    """`np.array` as before 2.0: `copy=False` copies if needed, and ragged nested lists work."""
    if kwargs.get("copy") is False:
        kwargs["copy"] = None
    try:
        return np.array(*args, **kwargs)
    except ValueError as error:
        if "inhomogeneous shape" not in str(error) or len(args) > 1 or kwargs.get("dtype"):
            raise
        return np.array(*args, **{**kwargs, "dtype": object})


@functools.wraps(np.fromstring)
def _fromstring(
    string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **kwargs: Any
) -> Any:
    if sep:
        return np.fromstring(string, dtype, count, sep=sep, **kwargs)
    data = string.encode("latin1") if isinstance(string, str) else string
    return np.frombuffer(data, dtype, count).copy()


@functools.cache
def given() -> dict[str, Any]:
    """The names that legacy modules get in place of NumPy's own, or in addition."""
    functions = {name: _with_arguments(getattr(np, name), old) for name, old in ARGUMENTS.items()}
    functions |= {name: _of_iterator(getattr(np, name)) for name in _STACKS}
    functions |= {"array": _array, "fromstring": _fromstring, "sum": _sum}
    renamed = {old: functools.reduce(getattr, new.split("."), np) for old, new in _RENAMED.items()}
    return {**renamed, **_WRITTEN, **functions}


def gives(name: str) -> bool:
    """Whether legacy modules get a name that NumPy dropped."""
    return name in _BUILTIN or name in given()


@functools.cache
def numpy() -> types.ModuleType:
    """`numpy` with the names that it dropped; `np.bool` is Python's `bool`, as before 1.24."""
    return _Numpy(np, {})


class _Numpy(Clone):
    def __getattr__(self, name: str) -> Any:
        for names in (_BUILTIN, given()):
            if name in names:
                return names[name]
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_BUILTIN, *given()})
