"""Finds the script that is to run, by its path or by the name of its module.

Imports no TensorFlow: that takes seconds, which a mistyped name should not cost.
"""

from __future__ import annotations

import dataclasses
import importlib.machinery
import importlib.util
import os
import sys


class NoScriptError(Exception):
    """There is nothing to run under the name; the message says why."""


@dataclasses.dataclass(frozen=True)
class Script:
    """The script, notebook or module to run; `spec` is a module's that was found by its name."""

    path: str
    spec: importlib.machinery.ModuleSpec | None = None


def check(name: str, *, module: bool) -> None:
    """Raises a NoScriptError where there is surely no such script or module; imports nothing."""
    if not module:
        file(name)
        return
    top = name.partition(".")[0]
    if top in {*sys.builtin_module_names, "__main__"} or not top.isidentifier():
        raise _no_module(name)
    find = importlib.machinery.PathFinder.find_spec
    # Editable installations may have finders of their own.
    spec = find(top, [os.getcwd(), *sys.path]) or importlib.util.find_spec(top)
    for end in range(1, name.count(".") + 1):
        if spec is None or _moves(spec):
            break
        inner = ".".join(name.split(".")[: end + 1])
        spec = find(inner, spec.submodule_search_locations or [])
    if spec is None:
        raise _no_module(name)


def _moves(package: importlib.machinery.ModuleSpec) -> bool:
    """Whether a package may look for its modules elsewhere: only running it tells."""
    source = package.origin if package.has_location else None
    if source is None or not source.endswith(".py"):
        return package.submodule_search_locations is None
    with open(source, "rb") as file:
        return b"__path__" in file.read()


def file(path: str) -> Script:
    """The script at `path`; a NoScriptError if there is none."""
    if os.path.isdir(path):
        raise NoScriptError(f"{path!r} is a directory; name the script in it.")
    if not os.path.exists(path):
        raise NoScriptError(f"there is no script {path!r} in {os.getcwd()!r}.")
    return Script(path)


def module(name: str) -> Script:
    """The script that `python -m NAME` would run; imports the packages around it."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        spec = None
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        raise _no_module(name)
    return Script(str(spec.origin), spec)


def _no_module(name: str) -> NoScriptError:
    return NoScriptError(f"there is no module {name!r} with Python source to run.")
