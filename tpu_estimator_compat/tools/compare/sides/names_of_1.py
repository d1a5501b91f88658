"""Gives `import tensorflow as tf` the meaning of TensorFlow 1, on a TensorFlow 2.

`tf` becomes `tf.compat.v1`, with a `tf.contrib` of the names that TensorFlow 2 and tf_slim kept. A
script that needs more must be compared on TensorFlow 1.15.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import tensorflow as tf


def install(everywhere: bool) -> None:
    """Makes `tensorflow.contrib` importable; with `everywhere`, `import tensorflow` is v1, too."""
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
