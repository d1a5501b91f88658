"""Namespaces of TensorFlow as legacy code knows them: the real modules plus the rows of the table.

A `Namespace` looks a name up in the table first, then in today's TensorFlow. Only namespaces with
dropped names are clones; all others are TensorFlow's own modules.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import operator
import sys
import types
from collections.abc import Sequence
from typing import Any

from tpu_estimator_compat.old_names.legacy import table
from tpu_estimator_compat.old_names.legacy.table import DeadName, Status


class Namespace(types.ModuleType):
    """A clone of a module with the table's names; attributes are made on first access.

    Args:
      path: the module's path in the table, such as `tf.contrib.tpu`.
      bases: namespaces to search for names that the table lacks, in order.
      children: name to namespace, for special namespaces below this one.
      alive_first: whether names of `bases` precede the table's, as in the API of TensorFlow 2.
    """

    def __init__(
        self,
        name: str,
        path: str,
        bases: tuple[Any, ...],
        children: dict[str, Any] | None = None,
        alive_first: bool = False,
    ):
        super().__init__(
            name, f"`{path}` for legacy code; see tpu_estimator_compat.old_names.legacy."
        )
        self.__dict__.update(
            __path__=[],
            _path=path,
            _bases=bases,
            _children=children or {},
            _alive_first=alive_first,
            _replaced={},
        )

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # not cached: attributes that are set later belong to it
            return self._exported()
        if name.startswith("__") and name.endswith("__"):
            is_of_tensorflow = "version" in name or name in _OF_TENSORFLOW
            value = self._alive(name) if is_of_tensorflow else _MISSING
        else:
            value = self._find(name)
        if value is _MISSING:
            raise AttributeError(_unknown(f"{self._path}.{name}"), name=name, obj=self)
        if self._copy_with(name) is None:
            self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets what only the original has in its copy, whose code looks for it there."""
        copy = self._copy_with(name)
        if copy is None:
            return super().__setattr__(name, value)
        self._replaced.setdefault(name, getattr(copy, name, _MISSING))
        setattr(copy, name, value)
        if table.main_path(self._path).removeprefix(f"{table.ORIGINAL}.").startswith(_NOT_RUN):
            said = "%s.%s is set, but no estimator of tpu_estimator_compat looks for it."
            logging.getLogger("tensorflow").warning(said, self._path, name)

    def __delattr__(self, name: str) -> None:
        """Undoes what was set, as tests do with a name that is not in `__dict__`."""
        copy = self._copy_with(name)
        if copy is None:
            super().__delattr__(name)
        elif (old := self._replaced.pop(name, _MISSING)) is _MISSING:
            delattr(copy, name)
        else:
            setattr(copy, name, old)

    def _copy_with(self, name: str) -> Any:
        """The copy of the original's module that has a name, or would; None if it is ours."""
        if not table.is_of_original(self._path):
            return None
        *ours, copy = self._bases or (None,)
        rows, path = table.load(), f"{self._path}.{name}"
        is_ours = rows.get(path) or rows.below(path) or name in self.__dict__
        return None if is_ours or any(hasattr(base, name) for base in ours) else copy

    def __dir__(self) -> list[str]:
        names = {*self.__dict__, *self._children, *table.load().below(self._path)}
        return sorted(names.union(*(dir(base) for base in self._bases)))

    def _exported(self) -> list[str]:
        """The names that `import *` imports: those that the bases export, and the table's."""
        names = {*self._children, *table.load().below(self._path)}
        for base in self._bases:
            public = getattr(base, "__all__", None) or [
                name
                for name, value in vars(base).items()
                if not isinstance(value, types.ModuleType)
            ]
            names.update(public)
        return sorted(name for name in names if name[0] != "_" and hasattr(self, name))

    def _find(self, name: str) -> Any:
        if name in self._children:
            return self._children[name]
        path = f"{self._path}.{name}"
        if path in _SHADOWED:
            return getattr(_serve(table.load().rows[path]), name)
        row, alive = table.load().get(path), self._alive(name)
        if self._alive_first and alive is not _MISSING:
            row = None
        refused = row is not None and row.status is Status.REFUSED
        below = table.load().below(path)
        if row is not None and refused and not below:
            return Refused(row)
        if row is None and not below:
            above = table.load().covering(path)
            # What else the original has in a module that is served in parts is refused, too.
            is_own = getattr(alive, "__module__", "") == of_copy(self._path)
            refuses = above and (above.advice if is_own else above.status is Status.REFUSED)
            if above and refuses and (is_own or alive is _MISSING):
                return Refused(dataclasses.replace(above, name=path))
        served = _MISSING if row is None or refused else _serve(row)
        merges = isinstance(served, types.ModuleType) and table.is_of_original(path)
        copy = _imported(of_copy(path)) if merges else _MISSING
        if below or copy is not _MISSING:
            bases = dict.fromkeys(base for base in (served, alive, copy) if base is not _MISSING)
            named = f"{self.__name__}.{name}"
            return Namespace(named, path, tuple(bases), alive_first=self._alive_first)
        return alive if served is _MISSING else served

    def _inside(self, parts: Sequence[str]) -> types.ModuleType | None:
        """The module for a path without a row, below this root namespace, or None.

        A module inside a namespace of `tf.contrib` has the namespace's names. Folders of TensorFlow
        such as `lite/python` are outside the API, and are imported.
        """
        path, names = ".".join(parts), table.load().below("tf.contrib")
        if parts[1] in _FOLDERS:
            try:
                alive = importlib.import_module(".".join(["tensorflow", *parts[1:]]))
            except ModuleNotFoundError:
                return None
            return Namespace(path, path, (alive,)) if table.load().below(path) else alive
        if parts[1:2] != ["contrib"] or parts[3:4] != ["python"] or parts[2] not in names:
            return None
        return Namespace(path, path, (module(self, ".".join(parts[1:3])),))

    def _alive(self, name: str) -> Any:
        for base in self._bases:
            value = getattr(base, name, _MISSING)
            if value is _MISSING:
                value = submodule(base, name)
            if value is not _MISSING:
                return value
        return _MISSING


class Refused:
    """Stands for a refused name: importing it works, using it raises an error with advice."""

    def __init__(self, row: DeadName):
        self._row = row

    def __repr__(self) -> str:
        return f"<{self._row.name}: not provided>"

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise NotImplementedError(
            f"{self._row.name} was dropped by TensorFlow {self._row.since}, and "
            f"tpu_estimator_compat does not provide it. {self._row.advice}"
        )

    __call__ = __getitem__ = __setitem__ = __iter__ = _refuse
    __enter__ = __exit__ = __mro_entries__ = _refuse

    def __instancecheck__(self, instance: Any) -> bool:
        return False  # a refused class has no instances

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Refused(dataclasses.replace(self._row, name=f"{self._row.name}.{name}"))


def module(root: Any, path: str) -> Any:
    """The module at a dotted path such as `contrib.tpu` below a `Namespace`; the root for "".

    If there is none, ModuleNotFoundError has the table's advice.
    """
    node = root
    done = root._path
    for part in path.split(".") if path else ():
        try:
            found = getattr(node, part)
        except AttributeError:
            found = submodule(node, part)
        done = f"{done}.{part}"
        row = table.load().get(done)
        if done in _SHADOWED and row is not None:
            found = _serve(row)
        if not isinstance(found, (types.ModuleType, Refused)):
            found = _behind(node, part) or root._inside(done.split("."))
        if found is None:
            raise ModuleNotFoundError(_unknown(done), name=done)
        node = found
    return node


def _behind(package: Any, name: str) -> Any:
    """The submodule that another attribute of the package hides; None if there is none."""
    bases = package._bases if isinstance(package, Namespace) else (package,)
    found = (submodule(base, name) for base in bases)
    return next((each for each in found if each is not _MISSING), None)


def member(parent: Any, path: str, name: str) -> Any:
    """The value of `from path import name`; its ImportError has the table's advice."""
    try:
        return getattr(parent, name)
    except AttributeError:
        found = submodule(parent, name)
        if found is _MISSING:
            found = _refused_in_public(table.canonical(f"{path}.{name}"))
        if found is _MISSING:
            raise ImportError(_unknown(f"{path}.{name}"), name=path) from None
        return found


def _refused_in_public(path: str) -> Any:
    """A `Refused` for a name that the `tf.contrib` namespace above refuses, or `_MISSING`."""
    parts = path.split(".")
    row = table.load().get(".".join([*parts[:3], parts[-1]]))
    if parts[1:2] != ["contrib"] or parts[3:4] != ["python"] or row is None:
        return _MISSING
    refused = row.status is Status.REFUSED
    return Refused(dataclasses.replace(row, name=path)) if refused else _MISSING


def _serve(row: DeadName) -> Any:
    where, _, attribute = row.served_by.partition(":")
    found = _module(where)
    if attribute:
        return getattr(found, attribute)
    # TensorFlow may also have dropped names of the module that serves the row.
    path = table.canonical(where)
    return Namespace(where, path, (found,)) if table.load().below(path) else found


def _module(where: str) -> Any:
    top, _, path = where.partition(".")
    if top != "tensorflow" or path.startswith(_INTERNAL):
        return importlib.import_module(where)
    # Importing a part of the API would load it a second time, in place of the first.
    found = importlib.import_module(top)
    return operator.attrgetter(path)(found) if path else found


def of_copy(path: str) -> str:
    """The name of an original's name in the copy with this package's Estimator."""
    return _COPY + table.main_path(path).removeprefix(table.ORIGINAL)


def submodule(package: Any, name: str) -> Any:
    """The real submodule of a package; `_MISSING` if there is none, or for a `Namespace`."""
    if isinstance(package, Namespace) or not hasattr(package, "__path__"):
        return _MISSING
    return _imported(f"{package.__name__}.{name}")


def _imported(path: str) -> Any:
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is not None and path.startswith(error.name):
            return _MISSING
        raise


def _unknown(path: str) -> str:
    namespace, _, name = path.rpartition(".")
    row = table.load().covering(path)
    gone = namespace.partition(".")[2].partition(".")[0] in _GONE
    if row is None and not gone:
        return f"module {namespace!r} has no attribute {name!r}"
    said = f" {row.advice}" if row and row.advice else ""
    version = getattr(sys.modules.get("tensorflow"), "__version__", "2")
    return (
        f"{path} is not in TensorFlow {version}, and tpu_estimator_compat has nothing in its "
        f"place.{said} Find others: python -m tpu_estimator_compat names PART"
    )


_COPY = "tpu_estimator_compat.old_names.canned.wheel"
"""Imported where a name is asked for that only the original has."""

_NOT_RUN = ("estimator", "inputs", "keras_lib", "model_fn", "run_config", "tpu", "util")
"""The original's modules for which this package has its own code."""

_SHADOWED = frozenset({"tf.contrib.framework.python.ops.arg_scope"})
"""Modules hidden by a function of the same name, which their package gets by `import *`. The
package's attribute is the function; an import of a name below it means the module.
"""

_OF_TENSORFLOW = frozenset({"__internal__", "__operators__"})
"""Names of the API that look like Python's own module attributes."""

_FOLDERS = frozenset({"lite", "tools", "tsl"})
"""Folders of TensorFlow whose modules are outside the API, though the API has a `lite`, too."""

_INTERNAL = ("compiler.", "core.", "python.", "tsl.")
"""Prefixes of TensorFlow's internal paths, which are outside the API."""

_MISSING: Any = object()
_GONE = {"contrib", "estimator"}  # all names below them are dropped
