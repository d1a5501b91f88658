"""Models: each the same maths for every side, and the sizes that it is timed with.

A model module has `NAME`, `OPTIMIZER`, `BATCH`, `examples(count)` and
`logits(get, features)`, where `get(name, shape, initial)` gives the side's own variable. One with
`IN_BATCHES` is fed from batches made beforehand.
"""

import importlib
import types
from typing import Any

import numpy as np
import tensorflow as tf

NAMES = ("small", "mlp", "convnet", "encoder", "encoder_12", "encoder_24", "encoder_48", "tables")
_STORED_EXAMPLES = 2048
_NUMPY: dict[str, Any] = {}


def load(name: str) -> Any:
    """The module of a model; of "encoder_12", what a module of twelve layers would have."""
    kind, _, layers = name.partition("_")
    module: Any = importlib.import_module(f"benchmarks.models.{kind}")
    if layers:
        module = module.with_layers(name, int(layers))
    _NUMPY[name] = module.examples(_STORED_EXAMPLES)
    return module


def dataset(model: types.ModuleType, count: int | None = None, labels: bool = True) -> Any:
    features, classes = _NUMPY[model.NAME]
    source = tf.data.Dataset.from_tensor_slices((features, classes) if labels else features)
    if getattr(model, "IN_BATCHES", False):
        assert count is None
        return source.batch(model.BATCH, drop_remainder=True).cache().repeat()
    source = source.repeat()
    if count is not None:
        source = source.take(count)
    return source.batch(model.BATCH, drop_remainder=True)


def batch(model: types.ModuleType) -> dict[str, np.ndarray]:
    features, _ = _NUMPY[model.NAME]
    return {name: np.asarray(value[: model.BATCH]) for name, value in features.items()}


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def initial(kind: float | str) -> Any:
    """The initializer behind an `initial` argument: "zeros", "ones" or a standard deviation."""
    if kind == "zeros":
        return tf.zeros_initializer()
    if kind == "ones":
        return tf.ones_initializer()
    return tf.random_normal_initializer(stddev=kind)


def variables(model: types.ModuleType) -> dict[str, tuple[tuple[int, ...], Any]]:
    """(shape, initial) of each variable by name, found by tracing the maths in a scratch graph."""
    found: dict[str, tuple[tuple[int, ...], Any]] = {}

    def get(name: str, shape: tuple[int, ...], kind: Any) -> tf.Tensor:
        found[name] = (tuple(shape), kind)
        return tf.zeros(shape)

    features, _ = _NUMPY[model.NAME]
    with tf.Graph().as_default():
        batch = tf.nest.map_structure(lambda x: tf.constant(np.asarray(x[: model.BATCH])), features)
        model.logits(get, batch)
    return found
