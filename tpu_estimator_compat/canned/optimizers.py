"""Optimizers of canned models: given by name, as an instance, or by a function that makes one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

_V1 = {
    "Adagrad": tf.compat.v1.train.AdagradOptimizer,
    "Adam": tf.compat.v1.train.AdamOptimizer,
    "Ftrl": tf.compat.v1.train.FtrlOptimizer,
    "RMSProp": tf.compat.v1.train.RMSPropOptimizer,
    "SGD": tf.compat.v1.train.GradientDescentOptimizer,
}
_V2 = {
    "Adagrad": tf_keras.optimizers.legacy.Adagrad,
    "Adam": tf_keras.optimizers.legacy.Adam,
    "Ftrl": tf_keras.optimizers.legacy.Ftrl,
    "RMSProp": tf_keras.optimizers.legacy.RMSprop,
    "SGD": tf_keras.optimizers.legacy.SGD,
}


def get_optimizer_instance(opt: Any, learning_rate: float | None = None) -> Any:
    """An optimizer of TensorFlow 1.

    Args:
      opt: a name (`Adagrad`, `Adam`, `Ftrl`, `RMSProp`, `SGD`), an optimizer of `tf.train`, or a
        function without arguments that makes one.
      learning_rate: for an optimizer that is named.

    Raises:
      ValueError: an unknown name, a name without a learning rate, or no optimizer.
    """
    if isinstance(opt, str):
        made_by = _named(opt, _V1)
        if not learning_rate:
            raise ValueError("learning_rate must be specified when opt is string.")
        return made_by(learning_rate=learning_rate)
    if callable(opt):
        opt = opt()
    if not isinstance(opt, tf.compat.v1.train.Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {opt}")
    return opt


def get_optimizer_instance_v2(opt: Any, learning_rate: float | None = None) -> Any:
    """An optimizer of Keras 2.

    Args:
      opt: a name, as above; an optimizer of Keras 2, or a function without arguments that makes
        one. Of an optimizer of the new kind, its legacy twin is taken.
      learning_rate: for an optimizer that is named; None for the optimizer's own.

    Raises:
      ValueError: an unknown name, or no optimizer of Keras 2.
    """
    if isinstance(opt, str):
        made_by = _named(opt, _V2)
        return made_by(learning_rate=learning_rate) if learning_rate else made_by()
    if callable(opt):
        opt = opt()
    if isinstance(opt, tf_keras.optimizers.experimental.Optimizer):
        opt = _legacy_twin(opt)
    if not isinstance(opt, (tf_keras.optimizers.legacy.Optimizer, tf_keras.optimizers.Optimizer)):
        raise ValueError(
            f"The given object is not a tf.keras.optimizers.Optimizer instance. Given: {opt}"
        )
    return opt


def _named(name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise ValueError(
            f"Unsupported optimizer name: {name}. Supported names are: {tuple(sorted(known))}"
        )
    return known[name]


def _legacy_twin(optimizer: Any) -> Any:
    """The legacy optimizer for a new one, whose values can only be read outside of a graph."""
    if not tf.executing_eagerly():
        raise ValueError(
            "Please set your optimizer as an instance of `tf.keras.optimizers.legacy.Optimizer`, "
            f"e.g., `tf.keras.optimizers.legacy.{type(optimizer).__name__}`."
            f"Received optimizer type: {type(optimizer)}."
        )
    logging.warning(
        "You are using `tf.keras.optimizers.experimental.Optimizer` in TF estimator, which only "
        "supports `tf.keras.optimizers.legacy.Optimizer`. Automatically converting your optimizer "
        "to `tf.keras.optimizers.legacy.Optimizer`."
    )
    return tf_keras.__internal__.optimizers.convert_to_legacy_optimizer(optimizer)
