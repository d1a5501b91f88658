"""Loads the files of tf_slim under another name, with imports that look in the table first."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tpu_estimator_compat.legacy.dialect import Dialect
from tpu_estimator_compat.legacy.imports import imported

_ORIGINAL = "tf_slim"
_COPY = "tpu_estimator_compat.contrib.slim"


def load_into(module: types.ModuleType) -> None:
    """Makes a module, which is being imported, the package of the copy."""
    spec = importlib.util.find_spec(_ORIGINAL)
    assert spec is not None
    assert spec.origin
    module.__path__ = list(spec.submodule_search_locations or ())
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    code = importlib.machinery.SourceFileLoader(_ORIGINAL, spec.origin).get_code(_ORIGINAL)
    assert code is not None
    module.__dict__["__builtins__"] = _BUILTINS
    exec(code, module.__dict__)


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """`__import__` as the copy sees it."""
    top, _, rest = name.partition(".")
    if level == 0 and top == _ORIGINAL:
        return _imported_from_copy(f"{_COPY}.{rest}" if rest else _COPY, fromlist)
    if level == 0 and top == "tensorflow":
        return imported(name, fromlist, Dialect.V1)
    return builtins.__import__(name, globals, locals, fromlist or (), level)


def _imported_from_copy(name: str, fromlist: Sequence[str] | None) -> Any:
    found = importlib.import_module(name)
    if not fromlist:
        return sys.modules[_COPY]
    for wanted in fromlist:
        if wanted != "*" and not hasattr(found, wanted):
            importlib.import_module(f"{name}.{wanted}")
    return found


_BUILTINS = {**vars(builtins), "__import__": _import}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the copy, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(f"{_COPY}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module with the `__import__` of the copy."""

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__builtins__"] = _BUILTINS
        super().exec_module(module)
