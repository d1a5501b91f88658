"""Variables and metrics of captured graphs, as Keras sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.state.variables import VariableStore


class AdoptedVariable(keras.Variable):
    """A `keras.Variable` that wraps an existing `tf.Variable` with a TF1 name."""

    def __init__(self, store: VariableStore, name: str, trainable: bool):
        self._store = store
        self._adopted = variable = store[name]
        # Keras refuses slashes in names, but not in paths.
        super().__init__(
            initializer=lambda shape, dtype=None: None,
            shape=tuple(variable.shape),
            dtype=variable.dtype.name,
            trainable=trainable,
            autocast=False,
            name=name.rsplit("/", 1)[-1],
        )
        self._path = name

    @property
    def value(self) -> tf.Variable:
        self._store.to_host([self._path])
        return super().value

    def _direct_assign(self, value: Any) -> None:
        super()._direct_assign(value)
        self._store.host_wrote([self._path])

    def _initialize(self, value) -> None:
        del value
        self._value = self._adopted

    def _initialize_with_initializer(self, initializer) -> None:
        del initializer
        self._value = self._adopted


class GraphMetric(keras.metrics.Metric):
    """A metric that test steps update in the graph; `reset` resets all metrics of the graph."""

    def __init__(self, name: str, read: Callable[[], np.ndarray], reset: Callable[[], None]):
        super().__init__(name=name)
        self._read = read
        self._reset = reset

    def update_state(self, *args, **kwargs) -> None:
        """Raises NotImplementedError: only the test step updates the metric."""
        raise NotImplementedError(
            f"Metric {self.name!r} comes from the model_fn, and every test step updates it. "
            "Call model.evaluate(...) instead."
        )

    def result(self) -> np.ndarray:
        return self._read()

    def reset_state(self) -> None:
        self._reset()
