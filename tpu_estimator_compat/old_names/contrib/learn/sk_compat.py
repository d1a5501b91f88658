"""`tf.contrib.learn.SKCompat`: an estimator with the calls of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_estimator_compat.old_names.contrib.learn.estimator import BaseEstimator


class SKCompat:
    """An estimator with the calls of scikit-learn, for arrays.

    Args:
      estimator: an estimator of `tf.contrib.learn`.
    """

    def __init__(self, estimator: BaseEstimator):
        self._estimator = estimator

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Sequence[Any] | None = None,
    ) -> SKCompat:
        """Trains; see `BaseEstimator.fit`."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self,
        x: Any,
        y: Any,
        batch_size: int | None = 128,
        steps: int | None = None,
        metrics: Mapping[Any, Any] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates; see `BaseEstimator.evaluate`."""
        return self._estimator.evaluate(
            x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name
        )

    def predict(
        self, x: Any, batch_size: int | None = 128, outputs: Sequence[str] | None = None
    ) -> Any:
        """The predictions of all of `x`; see `BaseEstimator.predict`."""
        return self._estimator.predict(x, None, batch_size, outputs, as_iterable=False)
