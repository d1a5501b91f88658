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
from typing import Any

import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = "tpu_estimator_compat"


def main(path: str) -> int:
    """Runs the job of a file; returns 1 if the script failed, else 0."""
    with open(path) as file:
        job = json.load(file)
    recorder = _load("recorder").Recorder(job)
    sys.modules.update(modules())
    if job["dialect"] == "v1":
        tf.compat.v1.disable_v2_behavior()
    _load("names_of_1").install(everywhere=job["dialect"] == "v1")
    status: int = recorder.record(tf.compat.v1.estimator, lambda: run(job))
    return status


def run(job: Any) -> None:
    sys.argv = [job["script"], *job["args"]]
    if job["module"]:
        sys.path[0] = os.getcwd()
        runpy.run_module(job["script"], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(job["script"]))
        runpy.run_path(job["script"], run_name="__main__")


def modules() -> Any:
    """Modules with the names of this package's public ones and the original's content."""
    v1, module = tf.compat.v1, _load("names_of_1").module
    tpu = vars(v1.tpu), vars(v1.estimator.tpu)
    root = module(OURS, *tpu)
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


def _load(name: str) -> Any:
    """A module of `sides`, in a package that no script imports."""
    package = f"_{OURS}_sides"
    if package not in sys.modules:
        path = os.path.join(HERE, "__init__.py")
        spec = importlib.util.spec_from_file_location(
            package, path, submodule_search_locations=[HERE]
        )
        assert spec is not None
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(f"{package}.{name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
