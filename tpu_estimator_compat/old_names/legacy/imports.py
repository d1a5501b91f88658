"""The import hook: legacy modules import TensorFlow 1 namespaces, all others the real package.

Python looks `__import__` up among the builtins of the importing module. A legacy module gets its
own builtins, with another `__import__`. So imports of all other modules stay unchanged, in every
thread, and TensorFlow and Keras still see each other's real modules.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import logging
import os
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tpu_estimator_compat.old_names.legacy import dialect, namespaces, overlay, table, vendored
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, Shown, shown
from tpu_estimator_compat.old_names.legacy.old_packages import OldPackages
from tpu_estimator_compat.old_names.legacy.python_numpy import (
    numpy_methods,
    numpy_names,
    python2,
    python_names,
)
from tpu_estimator_compat.old_names.legacy.python_path import PythonPath, below

_ROOTS = frozenset({"tensorflow", "tensorflow_estimator", "tensorflow_core"})
_ROOTS_OF_PACKAGES = _ROOTS | {"keras"}
_OURSELVES = __name__.partition(".")[0]


class SharedBuiltins(types.ModuleType):
    """`builtins`, and its copies for legacy modules: what is set in one is set in all.

    So `mock.patch("builtins.open")` is for legacy modules, too. Each has its own `__import__`.
    """

    _all: ClassVar[weakref.WeakSet[types.ModuleType]] = weakref.WeakSet([builtins])

    @classmethod
    def copy(cls, module: types.ModuleType) -> SharedBuiltins:
        made = cls(module.__name__)
        vars(made).update(vars(module))
        cls._all.add(made)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        for each in [self] if name == "__import__" else self._all:
            vars(each)[name] = value


class LegacyImports(importlib.abc.MetaPathFinder):
    """The finder of legacy modules; loads them with the builtins that they need.

    Args:
      folders: modules in files below these folders are legacy, except installed packages.
      packages: names of installed packages that are legacy; in them, `keras` is Keras 2.
      numpy: whether legacy modules get the names that NumPy dropped.
      own: names of packages that belong to the script.
      old_packages: decides which other installed packages are legacy.
      python_path: folders in which some modules are legacy.
      judge: returns the meaning of `tensorflow` in a legacy module that is about to run.
    """

    def __init__(
        self,
        folders: Iterable[str] = (),
        packages: Iterable[str] = (),
        numpy: bool = False,
        *,
        own: Iterable[str] = (),
        old_packages: OldPackages | None = None,
        python_path: PythonPath | None = None,
        judge: Callable[[Shown], Dialect] = lambda names: names.dialect or Dialect.V2,
    ):
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.packages = frozenset(packages)
        self.own = frozenset(own)
        self.old_packages = old_packages or OldPackages()
        self.numpy = numpy
        self.python_path = python_path or PythonPath("")
        self.judge = judge
        self.loaded: set[str] = set()
        self._by_meaning = {
            (meaning, roots): self._builtins(meaning, roots)
            for meaning in Dialect
            for roots in (_ROOTS, _ROOTS_OF_PACKAGES)
        }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not self._may_be_legacy(fullname, path):
            return None
        start = sys.meta_path.index(self) + 1 if self in sys.meta_path else 0
        for finder in sys.meta_path[start:]:
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(fullname, path, target)
            if spec is not None:
                return self._with_loader(spec) if self.is_legacy(spec) else spec
        return None

    def _with_loader(self, spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec:
        if isinstance(spec.loader, (_Loader, _Prepared)):  # another LegacyImports has prepared it
            return spec
        # Modules in archives are loaded unchanged.
        if str(spec.origin).endswith(".py") and os.path.isfile(str(spec.origin)):
            own = _Loader(spec.name, str(spec.origin), self)
            is_pythons = type(spec.loader) is importlib.machinery.SourceFileLoader
            spec.loader = own if is_pythons else _Prepared(spec.loader, own)
        return spec

    def _may_be_legacy(self, fullname: str, path: Sequence[str] | None) -> bool:
        """Fast check that rules most modules out, before other finders search for them."""
        top = fullname.partition(".")[0]
        if top == _OURSELVES:  # this package itself, even if its source is below the script
            return False
        if top in self.packages | self.own or self.old_packages.may_have(top):
            return True
        folders = [*self.folders, *self.python_path.folders]
        if path is not None:
            return any(below(entry, folders) for entry in path)
        return any(
            os.path.exists(os.path.join(entry or os.curdir, top + ending))
            for entry in sys.path
            if below(entry or os.curdir, folders)
            for ending in ("", ".py")
        )

    def is_legacy(self, spec: importlib.machinery.ModuleSpec) -> bool:
        """Whether a module belongs to the script, or is another legacy one."""
        top = spec.name.partition(".")[0]
        if top in self.packages | self.own:
            return True
        if not spec.has_location or not spec.origin:
            return False
        if below(spec.origin, self.folders) or self.python_path.is_own(top, spec.origin):
            return True
        return self.old_packages.has(top, spec.origin)

    def _is_of_package(self, namespace: dict[str, Any]) -> bool:
        """Whether a legacy module, given by its globals, belongs to an installed package."""
        top = str(namespace.get("__name__")).partition(".")[0]
        if top in self.packages:
            return True
        origin = str(namespace.get("__file__"))
        is_own = top in self.own or below(origin, self.folders)
        return not is_own and self.old_packages.has(top, origin)

    def prepare(
        self, namespace: dict[str, Any], meaning: Dialect, python_2: Sequence[str] = ()
    ) -> None:
        """Sets a module's builtins, for its meaning of `tensorflow` and its Python 2 names."""
        roots = _ROOTS_OF_PACKAGES if self._is_of_package(namespace) else _ROOTS
        namespace["__builtins__"] = self._by_meaning[meaning, roots]
        if python_2:
            found = namespace["__builtins__"] = SharedBuiltins.copy(namespace["__builtins__"])
            vars(found).update(python2.given(python_2))
            where = namespace.get("__file__") or namespace.get("__name__")
            logging.getLogger("tensorflow").warning(
                "%s uses %s: %s", where, ", ".join(python_2), python2.SEMANTICS_WARNING
            )

    def _builtins(self, meaning: Dialect, roots: frozenset[str]) -> types.ModuleType:
        made = SharedBuiltins.copy(builtins)
        vars(made)["__import__"] = functools.partial(self.import_, meaning=meaning, roots=roots)
        return made

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
        *,
        meaning: Dialect,
        plain: Callable[..., Any] | None = None,
        roots: frozenset[str] = _ROOTS,
    ) -> Any:
        """`__import__` for a legacy module in which `tensorflow` means `meaning`.

        `plain` imports modules that are not below `roots`; None for Python's `__import__`.
        """
        __tracebackhide__ = True  # pytest then shows only the frames of the tests
        top = name.partition(".")[0]
        if not level and top in roots:
            return imported(name, fromlist, meaning)
        found = (plain or builtins.__import__)(name, globals, locals, fromlist or (), level)
        if level:
            return found
        if name != top and fromlist:
            return found  # a submodule: only top modules get dropped names
        if top == "importlib":
            return _importlib(meaning, roots)
        if top == "numpy" and self.numpy:
            return numpy_names.numpy()
        return python_names.module(top) or found


def compiled(source: bytes, path: str, *, numpy: bool) -> tuple[types.CodeType, Shown]:
    """Compiles a module; `numpy` says whether calls that NumPy dropped are rewritten."""
    with python2.explained(source, path):
        flags: int = ast.PyCF_ONLY_AST  # `ast.parse` would be a frame in a SyntaxError's traceback
        tree = compile(source, path, "exec", flags, dont_inherit=True)
    code = numpy_methods.mended(tree) if numpy else tree
    return compile(code, path, "exec", dont_inherit=True), shown(tree, path)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, imports: LegacyImports):
        super().__init__(fullname, path)
        self._imports = imports

    def prepared(self, module: types.ModuleType) -> types.CodeType:
        source = self.get_data(self.path)
        code, names = compiled(source, self.path, numpy=self._imports.numpy)
        self._imports.prepare(module.__dict__, self._imports.judge(names), names.python_2)
        self._imports.loaded.add(module.__name__)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        __tracebackhide__ = True
        code = self.prepared(module)
        copy = vendored.copy_of_original(self.get_data(self.path))
        if copy is None:
            exec(code, module.__dict__)
        else:
            vendored.stand_in(module, copy)


class _Prepared(importlib.abc.Loader):
    """Loads a legacy module with another loader, such as pytest's, which rewrites `assert`."""

    def __init__(self, loader: Any, own: _Loader):
        self._loader = loader
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        module: types.ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        __tracebackhide__ = True
        self._own.prepared(module)
        self._loader.exec_module(module)


@functools.cache
def of_copies(meaning: Dialect = Dialect.V1) -> Callable[..., Any]:
    """The `__import__` of copied packages, which finds old names of TensorFlow and Python."""
    roots = frozenset({"tensorflow"})
    return functools.partial(LegacyImports().import_, meaning=meaning, roots=roots)


def imported(name: str, fromlist: Sequence[str] | None, meaning: Dialect) -> Any:
    """The module that a legacy module gets for an import of TensorFlow or Keras 2.

    An `import` statement passes `fromlist` as a tuple, all names of which must exist. For a list,
    as in `__import__(name, fromlist=["_"])`, Python returns the module all the same.
    """
    root, path = _root(name, meaning)
    module = overlay.module(root, path)
    if not fromlist:
        return _top(name, meaning)
    for wanted in fromlist:
        if wanted == "*":
            continue
        try:
            overlay.member(module, name, wanted)
        except ImportError as error:
            if isinstance(fromlist, tuple) or error.name != name:  # an error within a submodule
                raise
    return module


def _root(name: str, meaning: Dialect) -> tuple[Any, str]:
    top, _, path = table.public(name).partition(".")
    if top == "tensorflow":
        meaning, path = dialect.meaning(f"{top}.{path}", meaning)
    return _top(top, meaning), path


def _top(name: str, meaning: Dialect) -> Any:
    top = name.partition(".")[0]
    if top == "keras":
        return namespaces.keras_2()
    if top == "tensorflow_estimator":
        return namespaces.tensorflow_estimator()
    return namespaces.v1() if meaning is Dialect.V1 else namespaces.v2()


def _importlib(meaning: Dialect, roots: frozenset[str]) -> types.ModuleType:
    """The `importlib` of legacy modules: its `import_module` follows the same rules."""

    def import_module(name: str, package: str | None = None) -> types.ModuleType:
        if name.partition(".")[0] in roots:
            root, path = _root(name, meaning)
            module: types.ModuleType = overlay.module(root, path)
            return module
        return importlib.import_module(name, package)

    clone = types.ModuleType("importlib", importlib.__doc__)
    clone.__dict__.update(vars(importlib), import_module=import_module)
    return clone
