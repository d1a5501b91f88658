"""Runs a script unchanged, as `python SCRIPT ARGS...` did before TensorFlow dropped names."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence

from absl import flags
from absl.testing import flagsaver

from tpu_estimator_compat.old_names.legacy import locating, log_lines
from tpu_estimator_compat.old_names.legacy.behavior import Behavior
from tpu_estimator_compat.old_names.legacy.dialect import Dialect, Shown
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports, compiled
from tpu_estimator_compat.old_names.legacy.notebooks.cells import is_notebook
from tpu_estimator_compat.old_names.legacy.notebooks.program import Program
from tpu_estimator_compat.old_names.legacy.old_packages import OldPackages
from tpu_estimator_compat.old_names.legacy.python_path import PythonPath

_one_at_a_time = threading.RLock()  # a script changes the process: sys.argv, __main__, flags
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
) -> None:
    """Runs a script or a notebook as `__main__`, and restores the process afterwards.

    These modules get the names that TensorFlow dropped, from `tpu_estimator_compat.v1`: the script,
    modules beside it or in its package, modules on PYTHONPATH that no installed package owns,
    installed packages that use such names, and `legacy_packages`. Other modules import the real
    TensorFlow. Only one thread at a time runs a script.

    Args:
      name: path of the script, or, with `module`, the name of a module.
      arguments: the script's `sys.argv[1:]`.
      legacy_packages: installed packages that are legacy, whatever names they use.
      modern_packages: installed packages that see the real TensorFlow, whatever names they use.
      module: whether `name` is a module's, as with Python's `-m`.
      numpy_legacy: whether names that NumPy dropped (`np.float`, `x.tostring()`) work there.
      behavior: "v1" for graphs, as after `disable_v2_behavior()`; "v2" for eager execution; "auto"
        for the behavior that the names in the script, or in its modules, show.

    Raises:
      NoScriptError: there is no such script, or the notebook cannot be run.
      SyntaxError: the script is not Python 3; a note says if it is Python 2.
    """
    asked, chosen, name = _BEHAVIORS[behavior], Behavior(), os.fspath(name)
    folder = os.getcwd() if module else os.path.dirname(os.path.abspath(name))
    imports = LegacyImports(
        [folder],
        legacy_packages,
        numpy_legacy,
        own=[name.partition(".")[0]] if module else [],
        old_packages=OldPackages(modern_packages),
        python_path=PythonPath(),
        judge=chosen.judge,
    )
    with _one_at_a_time, _owning(folder, imports), chosen, log_lines.told_once():
        _name_plugin(imports)
        script = locating.module(name) if module else locating.file(name)
        shown, execute = _read(script, numpy_legacy)
        main = _main(script)
        imports.prepare(main.__dict__, chosen.start(shown, asked), shown.python_2)
        sys.argv, sys.modules["__main__"] = [script.path, *arguments], main
        execute(main)


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
    main = types.ModuleType("__main__")
    package = script.spec.parent if script.spec else None
    main.__dict__.update(
        __file__=script.path, __cached__=None, __spec__=script.spec, __package__=package
    )
    return main


@contextlib.contextmanager
def _owning(folder: str, imports: LegacyImports) -> Iterator[None]:
    """Sets up sys.path, the finder and flags for the script, and restores them afterwards."""
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    parsed, environment = flags.FLAGS.is_parsed(), dict(os.environ)
    sys.path[:] = [folder, *sys.path]
    sys.meta_path.insert(0, imports)
    try:
        with warnings.catch_warnings(), log_lines.given_back(), flagsaver.flagsaver():
            yield
    finally:
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        sys.meta_path.remove(imports)
        sys.argv, sys.path[:], sys.modules["__main__"] = before
        for name in imports.loaded:
            sys.modules.pop(name, None)
        if not parsed:
            flags.FLAGS.unparse_flags()


def _name_plugin(imports: LegacyImports) -> None:
    """Adds the plugin to PYTEST_PLUGINS if the script is pytest, for its child processes too."""
    if "pytest" in imports.own:
        others = os.environ.get("PYTEST_PLUGINS")
        os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, [others, _PYTEST_PLUGIN]))
