"""Runs a script on TensorFlow 2.15 with names that a package needs and that this release dropped.

`older_names.py PACKAGE SCRIPT [argument ...]`. The package and the script are those that this
package runs; so the original can be asked what they compute.
"""

import importlib
import runpy
import sys


def deepctr():
    """Keras by a path below which 2.15 has hardly anything left."""
    for part in ("", ".backend", ".initializers", ".layers", ".models", ".regularizers"):
        sys.modules[f"tensorflow.python.keras{part}"] = importlib.import_module(f"keras.src{part}")


def ranking():
    """A layer by the place that it had in 1.15."""
    import tensorflow.compat.v1 as tf
    from tensorflow.python.feature_column import feature_column_lib

    feature_column_lib.DenseFeatures = tf.keras.layers.DenseFeatures


def bert_serving():
    """TensorFlow 1, with the layers of `tf.contrib` as tf_slim has them."""
    import tensorflow.compat.v1 as tf
    import tf_slim

    tf.disable_v2_behavior()
    tf.contrib = tf_slim
    sys.modules["tensorflow"] = tf


if __name__ == "__main__":
    package, *sys.argv = sys.argv[1:]
    {"deepctr": deepctr, "ranking": ranking, "bert_serving": bert_serving}[package]()
    runpy.run_path(sys.argv[0], run_name="__main__")
