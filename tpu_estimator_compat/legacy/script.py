"""Runs a script unchanged, as `python SCRIPT ARGS...` did when its names were alive."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Iterable, Iterator, Sequence

from absl import flags

from tpu_estimator_compat.legacy import behavior
from tpu_estimator_compat.legacy.dialect import dialect
from tpu_estimator_compat.legacy.imports import LegacyImports

_one_at_a_time = threading.RLock()  # a script owns sys.argv, __main__ and the flags of its process


@dataclasses.dataclass(frozen=True)
class Script:
    """What can be run.

    Args:
      path: of the file.
      folder: goes to the front of `sys.path`.
      package: the package that it is a part of, if any.
      spec: of the module, if it was found by its name.
    """

    path: str
    folder: str
    package: str = ""
    spec: importlib.machinery.ModuleSpec | None = None


def find(name: str | os.PathLike[str], module: bool = False) -> Script:
    """Finds a script.

    Args:
      name: path of a file, or the name of a module.
      module: whether it is the latter.

    Raises:
      OSError: there is no such file, or it is a directory.
      ImportError: there is no such module, or it is not a file of Python source.
    """
    name = os.fspath(name)
    if module:
        return _module(name)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a directory; name the script in it.")
    if not os.path.exists(name):
        raise FileNotFoundError(f"There is no script {name!r} in {os.getcwd()!r}.")
    return Script(name, os.path.dirname(os.path.abspath(name)))


def run_script(
    name: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    legacy_packages: Iterable[str] = (),
    numpy_legacy: bool = False,
) -> None:
    """Finds a file and runs it: see `find` and `run`."""
    run(find(name), arguments, legacy_packages, numpy_legacy)


def run(
    script: Script,
    arguments: Sequence[str] = (),
    legacy_packages: Iterable[str] = (),
    numpy_legacy: bool = False,
) -> None:
    """Runs a script as `__main__`; afterwards the process is as it was.

    What the script imports by names that TensorFlow dropped is served from
    `tpu_estimator_compat.v1`, for itself, for modules beside it or in its package, and for
    `legacy_packages`. Others import the real TensorFlow. A script written for TensorFlow 1 runs
    with TensorFlow 2's behavior off, as it did. Of several threads, one runs a script at a time.

    Args:
      script: as `find` gave it.
      arguments: its `sys.argv[1:]`.
      legacy_packages: installed packages whose code is as old.
      numpy_legacy: whether names that NumPy dropped (`np.float`, `x.tostring()`) work there.

    Raises:
      SyntaxError: it is not Python 3; has a note if it is Python 2.
    """
    packages = {*legacy_packages, *filter(None, [script.package.partition(".")[0]])}
    imports = LegacyImports([script.folder], packages, numpy_legacy)
    with open(script.path, "rb") as file:
        code, tree = imports.compiled(file.read(), script.path)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script.path, __cached__=None, __spec__=script.spec)
    main.__dict__.update(__package__=script.package if script.spec else None)
    imports.prepare(main.__dict__, tree)
    argv = [script.path, *arguments]
    with _one_at_a_time, _owning(main, argv, script.folder, imports):
        with behavior.of(dialect(tree)):
            exec(code, main.__dict__)


def _module(name: str) -> Script:
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    finally:
        sys.path.remove(os.getcwd())
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        raise ImportError(f"There is no module {name!r} with Python source to run.")
    return Script(str(spec.origin), os.getcwd(), spec.parent or "", spec)


@contextlib.contextmanager
def _owning(
    main: types.ModuleType, argv: list[str], folder: str, imports: LegacyImports
) -> Iterator[None]:
    """The parts of the process that belong to its script; given back at the end."""
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    known = set(flags.FLAGS)
    sys.argv, sys.path[:] = argv, [folder, *sys.path]
    sys.modules["__main__"] = main
    sys.meta_path.insert(0, imports)
    try:
        yield
    finally:
        sys.meta_path.remove(imports)
        sys.argv, sys.path[:], sys.modules["__main__"] = before
        for name in imports.loaded:
            sys.modules.pop(name, None)
        for name in set(flags.FLAGS) - known:
            delattr(flags.FLAGS, name)
        flags.FLAGS.unparse_flags()
