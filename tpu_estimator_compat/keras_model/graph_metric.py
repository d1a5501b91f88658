"""A `keras.metrics.Metric` for the `(value, update_op)` pair of a captured graph."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np


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
