"""Finds the script to run, by path or module name, without the slow import of TensorFlow."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Iterable
from typing import Any

from tpu_estimator_compat.old_names.legacy.notebooks.cells import is_notebook


class NoScriptError(Exception):
    """No script or module has the name; the message says why."""


@dataclasses.dataclass(frozen=True)
class Script:
    """The script, notebook or module to run; `spec` is that of a module found by name."""

    path: str
    spec: importlib.machinery.ModuleSpec | None = None

    def source(self) -> bytes | None:
        """The source, also of a module in an archive; None for bytecode without source."""
        if self.path.endswith(".pyc"):
            return None
        content: bytes = self._loader().get_data(self.path)
        return content

    def code(self) -> types.CodeType:
        """The code of a script without source."""
        made: types.CodeType = self._loader().get_code(self.spec.name if self.spec else "__main__")
        return made

    def _loader(self) -> Any:
        if self.spec is not None:
            return self.spec.loader
        return importlib.machinery.SourcelessFileLoader("__main__", self.path)


def check(name: str, *, module: bool) -> None:
    """Raises NoScriptError if there is no script, or no top module; imports nothing."""
    if not module:
        file(name)
        return
    top = name.partition(".")[0]
    is_built_in = top in {*sys.builtin_module_names, "__main__"}
    if is_built_in or not all(name.split(".")) or not _is_there(top):
        raise _no_module(name)


def _is_there(top: str) -> bool:
    here = importlib.machinery.PathFinder.find_spec(top, [os.getcwd()])
    return here is not None or importlib.util.find_spec(top) is not None


def file(path: str) -> Script:
    """The script at `path`, made absolute, as by Python; raises NoScriptError if there is none.

    Messages name a notebook and its cells by the path that was given.
    """
    if os.path.isdir(path):
        raise NoScriptError(f"{path!r} is a directory; name the script in it.")
    if not os.path.exists(path):
        raise NoScriptError(f"there is no script {path!r} in {os.getcwd()!r}.")
    is_kept = is_notebook(path) or os.path.isabs(path)
    return Script(path if is_kept else os.path.join(os.getcwd(), path))


def module(name: str) -> Script:
    """The script that `python -m NAME` would run; imports the packages above it."""
    spec = _imported(name)
    if spec is not None and spec.submodule_search_locations is not None:
        inside, spec = spec.submodule_search_locations, _imported(f"{name}.__main__")
        if spec is None:
            raise _no_main(name, inside)
    if spec is None or not str(spec.origin).endswith((".py", ".pyc")):
        raise _no_module(name)
    return Script(str(spec.origin), spec)


def _imported(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        return None


def _no_module(name: str) -> NoScriptError:
    return NoScriptError(f"there is no module {name!r} with Python source or bytecode to run.")


def _no_main(name: str, folders: Iterable[str]) -> NoScriptError:
    found = (each.name for each in pkgutil.iter_modules(list(folders)))
    inside = ", ".join(f"{name}.{module}" for module in sorted(found)) or "none"
    return NoScriptError(
        f"{name!r} is a package, and its module __main__, which -m would run, is missing. "
        f"Name a module in it: {inside}."
    )
