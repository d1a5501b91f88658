"""What `import tensorflow` gives, by who asks: legacy modules get legacy namespaces, others do not.

Python looks `__import__` up among the builtins of the module that imports. A legacy module is given
builtins of its own, in which that one function is another. So nobody else's imports are touched,
whatever the thread, and TensorFlow and Keras go on seeing each other as they are.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tpu_estimator_compat.legacy import namespaces, numpy_names, overlay, python2, python_names
from tpu_estimator_compat.legacy.dialect import Dialect, dialect
from tpu_estimator_compat.legacy.python_path import PythonPath

_ROOTS = ("tensorflow", "tensorflow_estimator")
_OURSELVES = __name__.partition(".")[0]


class LegacyImports(importlib.abc.MetaPathFinder):
    """Who is legacy, and what legacy modules import.

    As a finder it finds legacy modules, and has them loaded with the builtins they need.

    Args:
      folders: modules whose files are below one of them are legacy; installed packages are not.
      packages: names of installed packages that are.
      numpy: whether NumPy shows them the names that it dropped.
      python_path: folders of which some modules are legacy too; None for none.
    """

    def __init__(
        self,
        folders: Iterable[str] = (),
        packages: Iterable[str] = (),
        numpy: bool = False,
        python_path: PythonPath | None = None,
    ):
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.packages = frozenset(packages)
        self.numpy = numpy
        self.python_path = python_path or PythonPath("")
        self.loaded: set[str] = set()
        self._by_dialect = {d: self._builtins(d) for d in Dialect}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a legacy module; None for all others."""
        if not self._may_be_legacy(fullname, path):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                break
        else:
            return None
        is_source = type(spec.loader) is importlib.machinery.SourceFileLoader
        if is_source and self._is_legacy(spec):
            spec.loader = _Loader(fullname, str(spec.origin), self)
        return spec

    def _may_be_legacy(self, fullname: str, path: Sequence[str] | None) -> bool:
        """Whether it is worth looking: most imports of a process are not of legacy modules."""
        top = fullname.partition(".")[0]
        if top == _OURSELVES:  # wherever it lies: perhaps in a clone below the script
            return False
        if top in self.packages:
            return True
        folders = [*self.folders, *self.python_path.folders]
        if path is not None:
            return any(_below(entry, folders) for entry in path)
        return any(
            os.path.exists(os.path.join(entry or os.curdir, top + ending))
            for entry in sys.path
            if _below(entry or os.curdir, folders)
            for ending in ("", ".py")
        )

    def _is_legacy(self, spec: importlib.machinery.ModuleSpec) -> bool:
        top = spec.name.partition(".")[0]
        if top in self.packages:
            return True
        if not spec.has_location or not spec.origin:
            return False
        return _below(spec.origin, self.folders) or self.python_path.is_own(top, spec.origin)

    def prepare(self, namespace: dict[str, Any], tree: ast.Module) -> None:
        """Gives the globals of a module, not yet run, the builtins that its source asks for."""
        namespace["__builtins__"] = self._by_dialect[dialect(tree)]

    def compiled(self, source: bytes | str, path: str) -> tuple[types.CodeType, ast.Module]:
        """A module's code and syntax tree.

        Raises:
          SyntaxError: with a note, if the source is Python 2.
        """
        with python2.explained(source, path):
            tree = ast.parse(source, path)
        code = numpy_names.mended(tree) if self.numpy else tree
        return compile(code, path, "exec", dont_inherit=True), tree

    def _builtins(self, meaning: Dialect) -> dict[str, Any]:
        def legacy_import(
            name: str,
            globals: Mapping[str, object] | None = None,
            locals: Mapping[str, object] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            return self.import_(name, globals, locals, fromlist, level, meaning)

        return {**vars(builtins), "__import__": legacy_import}

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None,
        locals: Mapping[str, object] | None,
        fromlist: Sequence[str] | None,
        level: int,
        meaning: Dialect,
        plain: Callable[..., Any] | None = None,
    ) -> Any:
        """`__import__` for a legacy module that means `meaning` by `tensorflow`.

        `plain` imports all that is not legacy; None for Python's.
        """
        top = name.partition(".")[0]
        if not level and top in _ROOTS:
            return imported(name, fromlist, meaning)
        found = (plain or builtins.__import__)(name, globals, locals, fromlist or (), level)
        if level:
            return found
        if name != top and fromlist:
            return found  # a module below the top, which has all its names
        if top == "importlib":
            return _importlib(meaning)
        if top == "numpy" and self.numpy:
            return numpy_names.numpy()
        return python_names.module(top) or found


def _below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is in one of the folders, and not among the packages installed there."""
    real = os.path.realpath(path)
    for folder in folders:
        rest = os.path.relpath(real, folder).split(os.sep)
        if rest[0] != os.pardir and not {"site-packages", "dist-packages"}.intersection(rest):
            return True
    return False


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a legacy module.

    Args:
      fullname: of the module.
      path: of its source.
      imports: the rules for its imports.
    """

    def __init__(self, fullname: str, path: str, imports: LegacyImports):
        super().__init__(fullname, path)
        self._imports = imports

    def exec_module(self, module: types.ModuleType) -> None:
        """Runs the module; its own tree says which API it means, so no bytecode is kept."""
        path = self.get_filename(module.__name__)
        code, tree = self._imports.compiled(self.get_data(path), path)
        self._imports.prepare(module.__dict__, tree)
        self._imports.loaded.add(module.__name__)
        exec(code, module.__dict__)


def imported(name: str, fromlist: Sequence[str] | None, meaning: Dialect) -> Any:
    """What `import name` or `from name import ...` of TensorFlow gives to a legacy module."""
    root, path = _root(name, meaning)
    module = overlay.module(root, path)
    if not fromlist:
        return _top(name, meaning)
    for wanted in fromlist:
        if wanted != "*":
            overlay.member(module, name, wanted)
    return module


def _root(name: str, meaning: Dialect) -> tuple[Any, str]:
    top, _, path = name.partition(".")
    if top == "tensorflow_estimator":
        return namespaces.tensorflow_estimator(), path
    if path == "compat.v1" or path.startswith("compat.v1."):
        return namespaces.v1(), path[len("compat.v1.") :]
    if path == "compat.v2" or path.startswith("compat.v2."):
        return namespaces.v2(), path[len("compat.v2.") :]
    return _top("tensorflow", meaning), path


def _top(name: str, meaning: Dialect) -> Any:
    if name.startswith("tensorflow_estimator"):
        return namespaces.tensorflow_estimator()
    return namespaces.v1() if meaning is Dialect.V1 else namespaces.v2()


def _importlib(meaning: Dialect) -> types.ModuleType:
    """The `importlib` of legacy modules, whose `import_module` follows the same rules."""

    def import_module(name: str, package: str | None = None) -> types.ModuleType:
        if name.partition(".")[0] in _ROOTS:
            root, path = _root(name, meaning)
            module: types.ModuleType = overlay.module(root, path)
            return module
        return importlib.import_module(name, package)

    clone = types.ModuleType("importlib", importlib.__doc__)
    clone.__dict__.update(vars(importlib), import_module=import_module)
    return clone
