"""Families of legacy models, for the original and for this package: a module each.

They import the names that TensorFlow 2.21 lacks from a module `legacy_namespace`.
"""

import functools
import importlib
import importlib.util
import pathlib
import types
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

NAMES = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("[a-z]*.py"))


def legacy_namespace(side: str) -> types.ModuleType:
    """The module `legacy_namespace`: of the "original" or of "ours"."""
    module = types.ModuleType("legacy_namespace")
    if side == "original":
        module.tpu, module.estimator = tf.estimator.tpu, tf.estimator
        module.layers, module.rnn_cell = tf.layers, tf.nn.rnn_cell
        return module
    for name in ("tpu", "estimator", "layers"):
        setattr(module, name, importlib.import_module(f"tpu_estimator_compat.{name}"))
    # The package has no name of its own for the cells; a script imports them from tf_keras.
    legacy = importlib.import_module("tf_keras.api._v1.keras.__internal__.legacy")
    module.rnn_cell = legacy.rnn_cell
    return module


def load(name: str) -> types.ModuleType:
    path = pathlib.Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def input_fns(examples: Callable[[int, int], Any], *counts: int) -> list[Callable[[Any], Any]]:
    """The input_fns of training, evaluation and prediction, on `examples(seed, count)`."""

    def batches(seed: int, params: Any) -> Any:
        data = examples(seed, counts[seed - 1])
        if seed == 3 and isinstance(data, tuple):
            data, _ = data
        dataset = tf.data.Dataset.from_tensor_slices(data)
        dataset = dataset.repeat() if seed == 1 else dataset
        return dataset.batch(params["batch_size"], drop_remainder=seed != 3)

    return [functools.partial(batches, seed) for seed in (1, 2, 3)]
