"""What a process needs to run a script with old names: the script's own process, and its children.

A child of a fork has all of it. One that multiprocessing starts by `spawn` or `forkserver` imports
the script again, with `runpy`, in a new Python.
"""

from __future__ import annotations

import builtins
import functools
import importlib.util
import runpy
import sys
import types
from collections.abc import Callable, Iterable
from multiprocessing import spawn
from typing import Any

from tpu_estimator_compat.old_names.legacy import locating
from tpu_estimator_compat.old_names.legacy.behavior import Behavior
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, Shown
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports, SharedBuiltins, compiled
from tpu_estimator_compat.old_names.legacy.old_packages import OldPackages
from tpu_estimator_compat.old_names.legacy.python_path import PythonPath


def begin(
    folder: str,
    own: Iterable[str] = (),
    legacy_packages: Iterable[str] = (),
    modern_packages: Iterable[str] = (),
    numpy: bool = False,
) -> tuple[LegacyImports, Behavior]:
    """Prepares this process for the script's modules, and for files that it runs with `runpy`.

    Args:
      folder: the script's.
      own: the script's own package, if it is a module of one.
      legacy_packages, modern_packages, numpy: as `script.run` takes them.
    """
    chosen = Behavior()
    imports = LegacyImports(
        [folder],
        legacy_packages,
        numpy,
        own=own,
        old_packages=OldPackages(modern_packages),
        python_path=PythonPath(),
        judge=chosen.judge,
    )
    builtins.__class__ = SharedBuiltins
    sys.meta_path.insert(0, imports)
    plain = runpy._run_code  # type: ignore[attr-defined]
    runpy._run_code = functools.partial(_run_code, imports, plain)  # type: ignore[attr-defined]
    return imports, chosen


def inherit(*of_script: Any) -> None:
    """Lets `spawn` and `forkserver` prepare their processes; takes what `_begin_child` takes."""
    told = spawn.get_preparation_data

    def tell(name: str) -> dict[str, Any]:
        data: dict[str, Any] = told(name)
        if name == "ignore":  # the forkserver itself need not import the script for its children
            data.pop("init_main_from_path", None)
        return {**data, "tpu_estimator_compat": _Beginning(*of_script)}

    spawn.get_preparation_data = tell


class _Beginning:
    """Prepares the process that unpickles it, before multiprocessing imports the script there."""

    def __init__(self, *of_script: Any) -> None:
        self._of_script = of_script

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _begin_child, self._of_script


def _begin_child(
    given: tuple[Any, ...],
    shown: Shown,
    asked: Dialect | None,
    in_children: Callable[[], None] | None,
) -> None:
    begin(*given)[1].start(shown, asked)
    inherit(given, shown, asked, in_children)  # for children of its own
    if in_children is not None:
        in_children()


def _run_code(
    imports: LegacyImports, plain: Callable[..., Any], code: types.CodeType, *given: Any
) -> Any:
    """`runpy._run_code`, which runs legacy modules as such."""
    __tracebackhide__ = True
    namespace, mod_spec, path = given[0], given[3], given[-1]
    spec = mod_spec or importlib.util.spec_from_file_location("__main__", path)
    if spec is not None and imports.is_legacy(spec):
        script = locating.Script(str(spec.origin), mod_spec)
        source, shown = script.source(), Shown(script.path)
        if source is not None:
            code, shown = compiled(source, script.path, numpy=imports.numpy)
        namespace.update(__name__=spec.name, __file__=script.path)
        imports.prepare(namespace, imports.judge(shown), shown.python_2)
    return plain(code, *given)
