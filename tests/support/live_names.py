"""Lists that are read without TensorFlow, made from the installed TensorFlow and the table.

`python tests/support/live_names.py` writes them:

- `names/only_v1.txt`, `names/only_v2.txt`: names that only one of TensorFlow's two APIs has, one to
  three levels deep: `placeholder`, `train.AdamOptimizer`, `keras.backend.get_session`.
- `names/provided.txt`: the names in the modules that serve rows of the table. `NAME+` has those
  that a module of the original has besides, `NAME!` those of them that are refused.
"""

from __future__ import annotations

import importlib
import pathlib
import pkgutil
import types

from tpu_estimator_compat.old_names.canned import wheel
from tpu_estimator_compat.old_names.legacy import namespaces, overlay, table

FOLDER = pathlib.Path(table.__file__).parent / "names"

_NOT_API = {"compiler", "core", "include", "lite", "python", "security", "tools", "tsl"}
"""Packages in TensorFlow's folder that are no part of either API, or of both."""

_IN_BOTH = {"estimator", "keras", "compat"}
"""Namespaces that both APIs had while TensorFlow had them."""

_FROM_KERAS = ("initializers", "losses", "metrics", "optimizers")
"""Namespaces of TensorFlow 2 that are those of Keras."""

_OF_OTHERS = "tpu_estimator_compat.old_names.contrib.slim"
"""Copies of packages whose modules legacy code knew by their names."""


_KEPT = pathlib.Path(__file__).parents[1] / "old_names" / "legacy"
"""The folder with the public names of TensorFlow 1.15 and 2.15."""


def only_in_each() -> tuple[list[str], list[str]]:
    v1, v2 = _names_of_v1(), _names_of_v2()
    v1 |= _names_of_table(v2)
    # Three levels deep, today's APIs do not tell: TensorFlow 2 dropped experiments that 1 keeps.
    old_v1, new_v1, old_v2 = (_kept(each) for each in ("1.15", "2.15_v1", "2.15_v2"))
    of_keras = {name for name in old_v1 if name.startswith("keras.")}
    only_v1 = {name for name in v1 - v2 - old_v2 if name.count(".") < 2 or name in of_keras}
    only_v2 = {name for name in v2 - v1 if name.count(".") < 2 or name not in old_v1 | new_v1}
    return _without_covered(only_v1), _without_covered(only_v2)


def _kept(release: str) -> set[str]:
    """The public names of a release, without `tf.`."""
    lines = (_KEPT / f"public_names_{release}.txt").read_text().splitlines()
    found = (line.partition(": ") for line in lines)
    return {f"{space}.{name}"[3:] for space, _, names in found for name in names.split()}


def provided() -> dict[str, list[str]]:
    """The names in the modules that serve rows of the table, private ones too, by row."""
    return {
        row.name: _attributes(importlib.import_module(row.served_by))
        for row in table.load().rows.values()
        if row.status is not table.Status.REFUSED and ":" not in row.served_by
    } | {table.ORIGINAL: [], "tensorflow_estimator": []}


def of_original(ours: dict[str, list[str]]) -> dict[str, list[str]]:
    """What modules of the original have besides ours, by module: `+` its own, `!` refused."""
    found: dict[str, list[str]] = {}
    [folder] = wheel.__path__
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        path = ".".join(("python.estimator", *(part for part in parts if part != "__init__")))
        space = overlay.module(namespaces.tensorflow_estimator(), path)
        name = f"tensorflow_estimator.{path}"
        if parts[0] == "api" or isinstance(space, overlay.Refused):
            continue
        module = importlib.import_module(name.replace(table.ORIGINAL, wheel.__name__))
        below = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        own = () if module is wheel else vars(module)
        names = {each for each in own if each[:2] != "__" and each not in ours.get(name, ())}
        for each in sorted(names | below):
            mark = "!" if isinstance(overlay.member(space, name, each), overlay.Refused) else "+"
            found.setdefault(name + mark, []).append(each)
    return found


def _attributes(module: types.ModuleType) -> list[str]:
    """A module's names, without our submodules that are only there because of an import."""
    public = {*_public(module)}
    inner = f"{module.__name__}."
    names = {name for name in dir(module) if not name.startswith("__")}
    refused = {n for n in names if isinstance(getattr(module, n), overlay.Refused)}
    submodules = {n for n in names if getattr(getattr(module, n), "__name__", "") == inner + n}
    if module.__name__.startswith(_OF_OTHERS):
        found = {each.name for each in pkgutil.iter_modules(getattr(module, "__path__", ()))}
        public |= {name for name in found if not name.endswith("_test")}
    return sorted((names - submodules | public) - refused)


def write(folder: pathlib.Path = FOLDER) -> None:
    for version, names in enumerate(only_in_each(), start=1):
        (folder / f"only_v{version}.txt").write_text("".join(f"{name}\n" for name in names))
    ours = provided()
    every = sorted((ours | of_original(ours)).items())
    lines = [f"{name}: {' '.join(names)}\n" for name, names in every]
    (folder / "provided.txt").write_text("".join(lines))


def _names_of_v1() -> set[str]:
    import tensorflow as tf
    import tf_keras.api._v1.keras as keras

    # Of the namespaces that Keras fills, TensorFlow 1 had the code that tf_keras keeps.
    names = {name for name in _names(tf.compat.v1, 3) if not name.startswith("keras.")}
    return names | {f"keras.{name}" for name in _names(keras, 2)}


def _names_of_v2() -> set[str]:
    import tensorflow as tf
    import tf_keras.api._v2.keras as keras

    # Code that means TensorFlow 2 may know it with Keras 2, which had names that Keras 3 dropped.
    names = _names(tf, 2) | {f"keras.{name}" for name in _names(keras, 2)}
    for namespace in _FROM_KERAS:
        names |= {f"{namespace}.{name}" for name in _names(getattr(keras, namespace), 2)}
    return names


def _names_of_table(names_of_v2: set[str]) -> set[str]:
    """One or two levels of the table's names that TensorFlow 2 never had."""
    found = set()
    for row in table.load().rows:
        root, *parts = row.split(".")
        if root != "tf" or parts[0] in _IN_BOTH | _NOT_API:
            continue
        found.update({parts[0], ".".join(parts[:2])} - names_of_v2)
    return found


def _names(namespace: types.ModuleType, depth: int) -> set[str]:
    found = set()
    for name in _public(namespace):
        found.add(name)
        value = getattr(namespace, name)
        if depth > 1 and isinstance(value, types.ModuleType):
            found |= {f"{name}.{below}" for below in _names(value, depth - 1)}
    return found


def _public(namespace: types.ModuleType) -> list[str]:
    try:
        names = getattr(namespace, "__all__", None) or dir(namespace)
    except ImportError:  # tf.compat.v1.layers, which is there but cannot be loaded
        return []
    return [name for name in sorted(names) if not name.startswith("_") and name not in _NOT_API]


def _without_covered(names: set[str]) -> list[str]:
    """Sorted, without names below a namespace that is listed itself."""
    return sorted(name for name in names if not _above(name) & names)


def _above(name: str) -> set[str]:
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


if __name__ == "__main__":
    write()
