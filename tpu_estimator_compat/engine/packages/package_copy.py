"""Loads a package under another name, with another `import`."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import pathlib
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Names = Callable[[], Mapping[str, Any] | types.ModuleType]
"""Makes the names of a module on first import; or returns a module that is there already."""
Over = Callable[[], Mapping[str, Any]]
"""Makes replacements of names of a module that was loaded."""
Import = Callable[..., Any]
"""A function with the arguments of `__import__`."""


def load_into(
    module: types.ModuleType,
    original: str,
    others: Import = builtins.__import__,
    instead: Callable[[str], Names | None] = lambda name: None,
    over: Mapping[str, Over] | None = None,
) -> Callable[[str], Any]:
    """Makes `module`, perhaps while it is being imported, a copy of a package.

    Args:
      original: the package to copy; its parent packages are not imported.
      others: imports modules of other packages for the copy's modules.
      instead: returns what makes the names of a module that is not loaded; None for others.
      over: maps loaded modules to functions that make replacements of their names.

    Returns:
      A function that imports a module of the copy, by its name in the package.

    Raises:
      ModuleNotFoundError: the package is not installed.
    """
    top, *below = original.split(".")
    spec = importlib.machinery.PathFinder.find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {original!r}", name=original)
    folder = pathlib.Path(spec.submodule_search_locations[0], *below)
    module.__path__ = [str(folder)]
    finder = _Finder(original, module.__name__, others, instead, over or {})
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)
    source = importlib.machinery.SourceFileLoader(original, str(folder / "__init__.py"))
    code = source.get_code(original)
    assert code is not None
    module.__dict__["__builtins__"] = finder.builtins()
    exec(code, module.__dict__)
    return lambda name: importlib.import_module(f"{finder.copy}.{name}")


@dataclasses.dataclass(frozen=True)
class _Finder(importlib.abc.MetaPathFinder):
    original: str
    copy: str
    others: Import
    instead: Callable[[str], Names | None] = dataclasses.field(compare=False)
    over: Mapping[str, Over] = dataclasses.field(compare=False)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(f"{self.copy}."):
            return None
        name = fullname.removeprefix(f"{self.copy}.")
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and (names := self.instead(name)) is not None:
            return importlib.machinery.ModuleSpec(fullname, Instead(names))
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path, self, self.over.get(name))
        return spec

    def builtins(self) -> dict[str, Any]:
        return {**vars(builtins), "__import__": self._import}

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level or not f"{name}.".startswith(f"{self.original}."):
            return self.others(name, globals, locals, fromlist or (), level)
        copied = self.copy + name.removeprefix(self.original)
        found = builtins.__import__(copied, fromlist=fromlist or ())
        return found if fromlist else sys.modules[self.copy]


class Instead(importlib.abc.Loader):
    def __init__(self, names: Names):
        self._names = names

    def exec_module(self, module: types.ModuleType) -> None:
        found = self._names()
        if isinstance(found, types.ModuleType):
            sys.modules[module.__name__] = found
        else:
            module.__dict__.update({n: found[n] for n in found if not n.startswith("__")})


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, finder: _Finder, over: Over | None):
        super().__init__(fullname, path)
        self._finder = finder
        self._over = over

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__["__builtins__"] = self._finder.builtins()
        super().exec_module(module)
        if self._over is not None:
            module.__dict__.update(self._over())
