"""Names that Python's standard library dropped, for legacy modules that ask for them.

They hide no current name. Python 3.11 dropped `inspect.getargspec`, 3.10 the abstract classes in
`collections`, 3.9 `fractions.gcd`, 3.8 `time.clock`.
"""

from __future__ import annotations

import collections.abc
import functools
import importlib
import inspect
import math
import time
import types
from typing import Any, NamedTuple


class ArgSpec(NamedTuple):
    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Any) -> ArgSpec:
    """The positional arguments of a function; ValueError for annotations or keyword-only ones."""
    found = inspect.getfullargspec(func)
    if found.kwonlyargs or found.annotations:
        raise ValueError(
            "Function has keyword-only parameters or annotations, use inspect.signature() API "
            "which can support them"
        )
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


_DROPPED: dict[str, dict[str, Any]] = {
    "collections": {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "fractions": {"gcd": math.gcd},
    "inspect": {"ArgSpec": ArgSpec, "getargspec": getargspec},
    "time": {"clock": time.perf_counter},
}


_IMPORTED = {"distutils": "distutils.version"}
"""Submodules that scripts use without an import: TensorFlow 1 had imported them."""


class Clone(types.ModuleType):
    """A module with added names, used if the module lacks them."""

    def __init__(self, module: types.ModuleType, added: dict[str, Any]):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_module=module, _added=added)

    def __getattr__(self, name: str) -> Any:
        if name in self._added and not hasattr(self._module, name):
            return self._added[name]
        return getattr(self._module, name)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._module), *self._added})


@functools.cache
def module(name: str) -> types.ModuleType | None:
    """The clone of a standard library module; None for a module that dropped nothing."""
    if name in _IMPORTED:
        importlib.import_module(_IMPORTED[name])
    if name not in _DROPPED:
        return None
    return Clone(importlib.import_module(name), _DROPPED[name])
