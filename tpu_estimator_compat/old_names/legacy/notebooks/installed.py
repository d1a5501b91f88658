"""`install()`, `uninstall()`, `%load_ext`: legacy imports for a notebook or a running module."""

from __future__ import annotations

import builtins
import functools
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from tpu_estimator_compat.old_names.legacy.dialect import Dialect
from tpu_estimator_compat.old_names.legacy.imports import LegacyImports

_installed: list[_Installed] = []


def install(
    legacy_packages: Iterable[str] = (), *, api: str = "v1", numpy_legacy: bool = False
) -> None:
    """Lets the calling module, such as a notebook, import names that TensorFlow dropped.

    From now on `import tensorflow as tf`, `from tensorflow.contrib import tpu` and the like give
    the legacy namespaces to the calling module, to modules in the working directory that are
    imported later, to installed packages that use dropped names, and to `legacy_packages`. Imports
    of all other modules, and TensorFlow itself, do not change. Unlike the `run` command, eager
    execution stays on; `tf.disable_v2_behavior()` switches it off.

    Args:
      legacy_packages: names of installed packages to treat as legacy; not imported yet.
      api: meaning of `tensorflow` in the calling module: "v1" for TensorFlow 1, "v2" for 2.0 to
        2.15. In a module that it imports, the names used there decide; if they show nothing, `api`
        decides.
      numpy_legacy: whether names that NumPy dropped, such as `np.float`, work too.

    Raises:
      ValueError: an unknown `api`, or a legacy package that is already imported.
    """
    _install(sys._getframe(1).f_globals, legacy_packages, api, numpy_legacy)


def load_ipython_extension(ipython: Any) -> None:
    """Calls `install()` for IPython's cells: `%load_ext tpu_estimator_compat`."""
    _install(ipython.user_global_ns, (), "v1", False)


def unload_ipython_extension(ipython: Any) -> None:
    """Calls `uninstall()`: `%unload_ext tpu_estimator_compat`."""
    del ipython
    uninstall()


def _install(
    namespace: dict[str, Any], legacy_packages: Iterable[str], api: str, numpy_legacy: bool
) -> None:
    meanings = {"v1": Dialect.V1, "v2": Dialect.V2}
    if api not in meanings:
        raise ValueError(f"api={api!r}: expected one of {sorted(meanings)}.")
    packages = frozenset(legacy_packages)
    early = sorted(packages & sys.modules.keys())
    if early:
        raise ValueError(
            f"Imported before install(): {', '.join(early)}. Restart, and call install() first."
        )
    uninstall()
    meaning = meanings[api]
    imports = LegacyImports(
        [os.getcwd()],
        packages,
        numpy_legacy,
        judge=lambda shown: shown.dialect or meaning,
    )
    installed = _Installed(namespace, imports, meaning)
    _installed.append(installed)
    sys.meta_path.insert(0, imports)
    builtins.__import__ = installed


def uninstall() -> None:
    """Undoes `install`; objects that were imported meanwhile remain usable."""
    while _installed:
        installed = _installed.pop()
        sys.meta_path.remove(installed.imports)
        for name in installed.imports.loaded:
            sys.modules.pop(name, None)
        if builtins.__import__ is installed:
            builtins.__import__ = installed.before
        else:  # another tool has wrapped this __import__: keep it, without effect
            installed.namespace = None


class _Installed:
    """`__import__` while installed; recognizes the calling module by its globals."""

    def __init__(self, namespace: dict[str, Any], imports: LegacyImports, meaning: Dialect):
        self.namespace: dict[str, Any] | None = namespace
        self.imports = imports
        self.meaning = meaning
        self.before = builtins.__import__

    def __call__(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        *others: Any,
        **named: Any,
    ) -> Any:
        plain = self.before
        if globals is not None and globals is self.namespace:
            plain = functools.partial(self.imports.import_, meaning=self.meaning, plain=plain)
        return plain(name, globals, *others, **named)
