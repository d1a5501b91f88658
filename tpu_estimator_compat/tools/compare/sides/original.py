"""Runs and records a script in the original's environment: `python original.py JOB.json`.

This package is not installed there. A script that imports it gets the original's modules:
`import tpu_estimator_compat.v1 as tf` is `tf.compat.v1`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import runpy
import sys
import types
from typing import Any

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
KERAS_MODEL = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "keras_model")
OURS = "tpu_estimator_compat"
METHODS = {
    "__init__",
    "evaluate",
    "export_saved_model",
    "export_savedmodel",
    "predict",
    "train",
}


def main(path: str) -> int:
    """Runs the job of a file; returns 1 if the script failed, else 0."""
    with open(path) as file:
        job = json.load(file)
    calls = _load("calls")
    observe_all(calls)
    recorder = _load("recorder").Recorder(calls, job)
    sys.modules.update(modules())
    if job["dialect"] == "v1":
        tf.compat.v1.disable_v2_behavior()
    install_contrib(everywhere=job["dialect"] == "v1")
    status: int = recorder.record(tf.compat.v1.estimator, lambda: run(job))
    return status


def observe_all(calls: Any) -> None:
    """Has the original's estimators observed, as this package's are."""
    for kind in tf.compat.v1.estimator.tpu.TPUEstimator.__mro__[:-1]:  # without object
        for name in METHODS & set(vars(kind)):
            setattr(kind, name, calls.observed(vars(kind)[name]))


def run(job: Any) -> None:
    sys.argv = [job["name"], *job["arguments"]]
    if job["module"]:
        sys.path[0] = os.getcwd()
        runpy.run_module(job["name"], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(job["name"]))
        runpy.run_path(job["name"], run_name="__main__")


def modules() -> Any:
    """Modules with the names of this package's public ones and the original's content."""
    v1 = tf.compat.v1
    tpu = vars(v1.tpu), vars(v1.estimator.tpu)
    root: Any = module(OURS, *tpu)
    root.ModeKeys = v1.estimator.ModeKeys
    root.WarmStartSettings = v1.estimator.WarmStartSettings
    root.__path__ = []
    inner = {
        "estimator": v1.estimator,
        "layers": v1.layers,
        "tpu": module(OURS + ".tpu", *tpu),
        "v1": v1,
    }
    vars(root).update(inner)
    return {OURS: root, **{OURS + "." + name: module for name, module in inner.items()}}


def install_contrib(everywhere: bool) -> None:
    """Makes `tensorflow.contrib` importable; with `everywhere`, `import tensorflow` is v1, too.

    On a TensorFlow 2, it has the names that TensorFlow 2 and tf_slim kept. A script that needs more
    must be compared on TensorFlow 1.15.
    """
    if tf.__version__.startswith("1."):
        return
    v1 = tf.compat.v1
    slim = _slim()  # before the change: tf_slim is written for TensorFlow 2
    tpu = module("tensorflow.contrib.tpu", vars(v1.tpu), vars(v1.estimator.tpu))
    contrib = module(
        "tensorflow.contrib",
        {
            "cluster_resolver": tf.distribute.cluster_resolver,
            "data": v1.data.experimental,
            "tpu": tpu,
            **slim,
        },
    )
    v1.contrib = contrib
    sys.modules["tensorflow.contrib"] = contrib
    if everywhere:
        sys.modules["tensorflow"] = v1
    for name in ("tpu", "cluster_resolver", "data", *slim):
        sys.modules[f"tensorflow.contrib.{name}"] = getattr(contrib, name)


def _slim() -> dict[str, Any]:
    """Namespaces of contrib that went to tf_slim; none where tf_slim is not installed."""
    try:
        slim = importlib.import_module("tf_slim")
    except ImportError:
        return {}
    return {"layers": slim.layers, "metrics": slim.metrics, "slim": slim, "training": slim.training}


def module(name: str, *namespaces: Any) -> types.ModuleType:
    """A module with the public names of the namespaces; later ones replace earlier ones."""
    made = types.ModuleType(name)
    for namespace in namespaces:
        vars(made).update({k: v for k, v in namespace.items() if not k.startswith("_")})
    return made


def _load(name: str) -> Any:
    """A module of `sides` or of `keras_model`, in a package that no script imports."""
    package = f"_{OURS}_sides"
    if package not in sys.modules:
        path = os.path.join(HERE, "__init__.py")
        spec = importlib.util.spec_from_file_location(
            package, path, submodule_search_locations=[HERE, KERAS_MODEL]
        )
        assert spec is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{package}.{name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
