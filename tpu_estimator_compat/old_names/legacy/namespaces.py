"""The two namespaces that legacy code calls `tensorflow`: TensorFlow 1's and TensorFlow 2's.

TensorFlow 1's is the package `tpu_estimator_compat.v1` itself. TensorFlow 2's is today's
`tensorflow` with the names that it dropped since 2.0, such as `tf.estimator`, and with Keras 2 as
`tf.keras`. Old packages get Keras 2 as `keras`, too.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture import graph_building
from tpu_estimator_compat.engine.packages import package_copy
from tpu_estimator_compat.old_names.legacy import overlay
from tpu_estimator_compat.old_names.legacy.overlay import Namespace

V1 = "tpu_estimator_compat.v1"
_KERAS_NAMESPACES = ("initializers", "losses", "metrics", "optimizers")


def become_v1(package: types.ModuleType) -> None:
    """Turns a package into the `tf` of TensorFlow 1, with importable submodules."""
    package.__class__ = Namespace
    assert isinstance(package, Namespace)
    root = Namespace(V1, "tf", (tf.compat.v1, tf), {"compat": _compat(package)})
    package.__dict__.update({name: vars(root)[name] for name in vars(root) if name[:2] != "__"})
    graph_building.ask_for_dimension_values()
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def v1() -> Namespace:
    found = importlib.import_module(V1)
    assert isinstance(found, Namespace)
    return found


@functools.cache
def v2() -> Namespace:
    """`tf` of TensorFlow 2.0 to 2.15."""
    keras = importlib.import_module("tf_keras")
    children = {
        "compat": _compat(v1()),
        "estimator": _estimator(),
        "keras": Namespace(
            "tensorflow.keras",
            "tf.keras",
            (keras,),
            {"estimator": _keras_estimator()},
            alive_first=True,
        ),
        # In TensorFlow 2, these namespaces are Keras' own.
        **{name: getattr(keras, name) for name in _KERAS_NAMESPACES},
        "python": v1().python,  # TensorFlow's internals are the same for both APIs
    }
    bases = (tf, tf.compat.v2)  # which alone has `enable_v2_behavior`
    return Namespace("tensorflow", "tf", bases, children, alive_first=True)


@functools.cache
def tensorflow_estimator() -> Namespace:
    return Namespace("tensorflow_estimator", "tensorflow_estimator", ())


@functools.cache
def keras_2() -> Namespace:
    """The package `keras` of Keras 2: `tf_keras`, with its internals under both of their paths.

    They are `keras.engine` and the like up to 2.12, `keras.src.engine` from 2.13.
    """
    bases = tuple(importlib.import_module(name) for name in ("tf_keras", "tf_keras.src"))
    return _Keras2("keras", "keras", bases)


class _Keras2(Namespace):
    """A module of Keras 2: searches the public module, the internal one, then their parent.

    Names moved between internal modules: `keras.utils.generic_utils` had `get_custom_objects`.
    """

    def _alive(self, name: str) -> Any:
        value = super()._alive(name)
        if not isinstance(value, types.ModuleType):
            return value
        found = [overlay.submodule(base, name) for base in self._bases[:2]]
        modules = [module for module in found if isinstance(module, types.ModuleType)]
        if not modules:
            return value  # a module that this one imports, not its submodule
        above = keras_2().layers if name == "engine" else self._bases[0]
        path = f"{self._path}.{name}"
        return _Keras2(path, path, (*modules, above))

    def _inside(self, parts: Sequence[str]) -> Namespace | None:
        """`keras.layers` for modules that were merged, such as `keras.layers.recurrent`."""
        return keras_2().layers if parts[1] in ("layers", "engine") else None


def _estimator() -> Namespace:
    names = ("tpu_estimator_compat.old_names.canned.of_v2", "tpu_estimator_compat.estimator")
    bases = tuple(importlib.import_module(name) for name in names)
    return Namespace("tensorflow.estimator", "tf.estimator", bases, alive_first=True)


def _keras_estimator() -> types.ModuleType:
    keras_models = importlib.import_module("tpu_estimator_compat.estimator.keras_models")
    module = types.ModuleType("tensorflow.keras.estimator")
    module.__dict__["model_to_estimator"] = keras_models.model_to_estimator_v2
    return module


def _compat(root: Namespace) -> Namespace:
    return _Compat("tensorflow.compat", "tf.compat", (tf.compat,), {"v1": root})


class _Compat(Namespace):
    def __getattr__(self, name: str) -> Any:
        return v2() if name == "v2" else super().__getattr__(name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if not fullname.startswith(f"{V1}."):
            return None
        found = overlay.module(v1(), fullname.removeprefix(f"{V1}."))
        loader = package_copy.Instead(lambda: found)
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
