"""A `keras.Variable` whose value is an existing `tf.Variable` with a TF1 name."""

from __future__ import annotations

import keras
import tensorflow as tf


class AdoptedVariable(keras.Variable):
    """Shows a live variable of a captured graph to Keras.

    Args:
      variable: the live variable, plain or one per replica.
      name: its TF1 name, such as `dense/kernel`; becomes the path.
      trainable: whether the captured graph trains it.
    """

    def __init__(self, variable: tf.Variable, name: str, trainable: bool):
        self._adopted = variable
        # Keras refuses slashes in names, not in paths.
        super().__init__(
            initializer=lambda shape, dtype=None: None,
            shape=tuple(variable.shape),
            dtype=variable.dtype.name,
            trainable=trainable,
            autocast=False,
            name=name.rsplit("/", 1)[-1],
        )
        self._path = name

    def _initialize(self, value) -> None:
        del value
        self._value = self._adopted

    def _initialize_with_initializer(self, initializer) -> None:
        del initializer
        self._value = self._adopted
