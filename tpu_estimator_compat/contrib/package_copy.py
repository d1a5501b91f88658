"""Loads the files of a package under another name, with imports that look in the table first."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tpu_estimator_compat.legacy import python_names
from tpu_estimator_compat.legacy.dialect import Dialect
from tpu_estimator_compat.legacy.imports import imported


def load_into(module: types.ModuleType, original: str) -> None:
    """Makes a module the package of a copy.

    Args:
      module: the module, which may be just being imported.
      original: the package that is copied.

    Raises:
      ModuleNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec(original)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {original!r}", name=original)
    module.__path__ = list(spec.submodule_search_locations or ())
    finder = _Finder(original, module.__name__)
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    code = importlib.machinery.SourceFileLoader(original, spec.origin).get_code(original)
    assert code is not None
    module.__dict__["__builtins__"] = finder.builtins()
    exec(code, module.__dict__)


@dataclasses.dataclass(frozen=True)
class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of a copy, and nothing else.

    Args:
      original: the package's name.
      copy: the name of its copy.
    """

    original: str
    copy: str

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(f"{self.copy}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self)
        return spec

    def builtins(self) -> dict[str, Any]:
        """Those that a module of the copy sees."""
        return {**vars(builtins), "__import__": self._import}

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """`__import__` as the copy sees it."""
        top, _, rest = name.partition(".")
        if level == 0 and top == self.original:
            return self._imported_from_copy(f"{self.copy}.{rest}" if rest else self.copy, fromlist)
        if level == 0 and top == "tensorflow":
            return imported(name, fromlist, Dialect.V1)
        found = builtins.__import__(name, globals, locals, fromlist or (), level)
        dropped_there = level == 0 and (name == top or not fromlist)
        return (python_names.module(top) if dropped_there else None) or found

    def _imported_from_copy(self, name: str, fromlist: Sequence[str] | None) -> Any:
        found = importlib.import_module(name)
        if not fromlist:
            return sys.modules[self.copy]
        for wanted in fromlist:
            if wanted != "*" and not hasattr(found, wanted):
                importlib.import_module(f"{name}.{wanted}")
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    """Runs a module with the `__import__` of the copy."""

    def __init__(self, fullname: str, path: str, finder: _Finder):
        super().__init__(fullname, path)
        self._finder = finder

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__builtins__"] = self._finder.builtins()
        super().exec_module(module)
