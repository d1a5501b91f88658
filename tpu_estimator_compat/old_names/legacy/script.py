"""Runs a script unchanged, as `python SCRIPT ARGS...` did before TensorFlow dropped names."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
from collections.abc import Callable, Iterable, Sequence

from tpu_estimator_compat.old_names.legacy import children, locating
from tpu_estimator_compat.old_names.legacy.behavior import Behavior
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, Shown
from tpu_estimator_compat.old_names.legacy.imports import compiled
from tpu_estimator_compat.old_names.legacy.notebooks.cells import is_notebook
from tpu_estimator_compat.old_names.legacy.notebooks.program import Program

_PYTEST_PLUGIN = "tpu_estimator_compat.old_names.legacy.pytest_plugin"
_BEHAVIORS = {"auto": None, "v1": Dialect.V1, "v2": Dialect.V2}


def run(
    name: str | os.PathLike[str],
    arguments: Sequence[str] = (),
    legacy_packages: Iterable[str] = (),
    *,
    modern_packages: Iterable[str] = (),
    module: bool = False,
    numpy_legacy: bool = False,
    behavior: str = "auto",
    in_children: Callable[[], None] | None = None,
) -> None:
    """Runs a script or a notebook as `__main__`; from then on, the process is the script's.

    Its threads and `atexit` functions still find its arguments, environment and modules.

    These modules get the names that TensorFlow dropped, from `tpu_estimator_compat.v1`: the script,
    modules beside it or in its package, modules on PYTHONPATH that no installed package owns,
    installed packages that use such names, and `legacy_packages`. Other modules import the real
    TensorFlow. Children that multiprocessing starts get them, too.

    Args:
      name: path of the script, or, with `module`, the name of a module.
      arguments: the script's `sys.argv[1:]`.
      legacy_packages: installed packages that are legacy, whatever names they use.
      modern_packages: installed packages that see the real TensorFlow, whatever names they use.
      module: whether `name` is a module's, as with Python's `-m`.
      numpy_legacy: whether names that NumPy dropped (`np.float`, `x.tostring()`) work there.
      behavior: "v1" for graphs, as after `disable_v2_behavior()`; "v2" for eager execution; "auto"
        for the behavior that the names in the script, or in its modules, show.
      in_children: a module's function that children of `spawn` and `forkserver` call first.

    Raises:
      NoScriptError: there is no such script, or the notebook cannot be run.
      SyntaxError: the script is not Python 3; a note says if it is Python 2.
    """
    name = os.fspath(name)
    folder = os.getcwd() if module else os.path.dirname(os.path.realpath(name))
    if not sys.flags.isolated:  # commands start children with -P
        sys.path.insert(0, folder)
    own = (name.partition(".")[0],) if module else ()
    given = folder, own, tuple(legacy_packages), tuple(modern_packages), numpy_legacy
    imports, chosen = children.begin(*given)
    _name_plugin(own)
    script = locating.module(name) if module else locating.file(name)
    shown, execute = _read(script, numpy_legacy)
    main, asked = _main(script), _BEHAVIORS[behavior]
    children.inherit(given, shown, asked, in_children)
    imports.prepare(main.__dict__, chosen.start(shown, asked), shown.python_2)
    sys.argv, sys.modules["__main__"] = [script.path if module else name, *arguments], main
    _advised(chosen, execute, main)


def _advised(
    chosen: Behavior, execute: Callable[[types.ModuleType], None], main: types.ModuleType
) -> None:
    try:
        execute(main)
    except BaseException as error:
        chosen.advise(error)
        raise


def _read(script: locating.Script, numpy: bool) -> tuple[Shown, Callable[[types.ModuleType], None]]:
    path, source = script.path, script.source()
    if source is None:
        code, shown = script.code(), Shown(path)
    elif is_notebook(path):
        program = Program(source, path)
        return program.shown, program.run
    else:
        code, shown = compiled(source, path, numpy=numpy)
    return shown, lambda main: exec(code, main.__dict__)


def _main(script: locating.Script) -> types.ModuleType:
    """The module `__main__` as Python makes it."""
    main, spec, path = types.ModuleType("__main__"), script.spec, script.path
    main.__dict__.update(__file__=path, __cached__=None, __annotations__={})
    if spec is not None:
        main.__dict__.update(
            __spec__=spec, __package__=spec.parent, __loader__=spec.loader, __cached__=spec.cached
        )
    elif not is_notebook(path):
        of_path = importlib.machinery
        kind = of_path.SourcelessFileLoader if path.endswith(".pyc") else of_path.SourceFileLoader
        main.__loader__ = kind("__main__", path)
    return main


def _name_plugin(own: Sequence[str]) -> None:
    """Adds the plugin to PYTEST_PLUGINS if the script is pytest, for its child processes too."""
    if "pytest" in own:
        others = os.environ.get("PYTEST_PLUGINS")
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [others, _PYTEST_PLUGIN]))
