"""`tf.contrib.learn.MetricSpec`: which tensors a metric of an evaluation is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

# The original read arguments likewise: of what wrappers wrap, and without those that partials bind.
from tensorflow.python.util import function_utils

_LABELS = ("labels", "label", "targets", "target")
_PREDICTIONS = ("predictions", "prediction", "logits", "logit")
_WEIGHTS = ("weights", "weight")


class MetricSpec:
    """Connects a metric function to predictions, labels and weights, whatever it calls them.

    Args:
      metric_fn: gives `(value, update_op)`, or a tensor. What it calls `labels`, `label`,
        `targets` or `target` gets the labels; likewise `predictions`, `logits` and `weights`.
        Predictions go to the first place, if none has such a name.
      prediction_key: the key of the prediction; None for the only one.
      label_key: the key of the labels; None for the only ones.
      weight_key: the key of the feature that weighs examples; None for none.

    Raises:
      ValueError: it takes no labels or weights, and a key of them is given; or it has two
        arguments of one kind.
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ):
        self._name = _name(metric_fn)
        self._metric_fn = _adapted(
            metric_fn, self._name, label_key is not None, weight_key is not None
        )
        self._prediction_key = prediction_key
        self._label_key = label_key
        self._weight_key = weight_key

    @property
    def prediction_key(self) -> str | None:
        """Which of a dict of predictions."""
        return self._prediction_key

    @property
    def label_key(self) -> str | None:
        """Which of a dict of labels."""
        return self._label_key

    @property
    def weight_key(self) -> str | None:
        """Which feature weighs examples."""
        return self._weight_key

    @property
    def metric_fn(self) -> Callable[..., Any]:
        """The metric as a function of `labels`, `predictions` and `weights`, all by name."""
        return self._metric_fn

    def __str__(self) -> str:
        return (
            f"MetricSpec(metric_fn={self._name}, prediction_key={self.prediction_key}, "
            f"label_key={self.label_key}, weight_key={self.weight_key})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """Calls the metric function.

        Args:
          inputs: features, among them those that weigh.
          labels: a tensor, or a dict of tensors.
          predictions: a tensor, or a dict of tensors.

        Returns:
          What it returns.

        Raises:
          ValueError: a key is given for a tensor, or none for several.
          KeyError: there is no such key.
        """
        prediction = _chosen("prediction", predictions, self.prediction_key)
        label = _chosen("label", labels, self.label_key)
        try:
            weights = inputs[self.weight_key] if self.weight_key else None
            return self.metric_fn(labels=label, predictions=prediction, weights=weights)
        except Exception as error:
            tf.logging.error("Could not create metric ops for %s, %s.", self, error)
            raise


def _name(function: Any) -> str:
    named = function if hasattr(function, "__name__") else getattr(function, "func", function)
    return getattr(named, "__name__", str(function))


def _chosen(kind: str, given: Any, key: str | None) -> Any:
    if not key:
        if isinstance(given, dict) and len(given) != 1:
            raise ValueError(
                f"MetricSpec without specified {kind}_key requires {kind}s tensor or single "
                f"element dict, got {given}"
            )
        return next(iter(given.values())) if isinstance(given, dict) else given
    if not isinstance(given, dict):
        raise ValueError(
            f"MetricSpec with {kind}_key specified requires {kind}s dict, got {given}.\n"
            f"You must not provide a {kind}_key if you only have a single Tensor as {kind}s."
        )
    if key not in given:
        raise KeyError(f"Key '{key}' missing from {given.keys()}.")
    return given[key]


def _adapted(
    metric_fn: Callable[..., Any], name: str, needs_labels: bool, needs_weights: bool
) -> Callable[..., Any]:
    """A metric function as one of labels, predictions and weights."""
    arguments = function_utils.fn_args(metric_fn)
    labels_name = _match(name, arguments, _LABELS, needs_labels)
    predictions_name = _match(name, arguments, _PREDICTIONS, False)
    weights_name = _match(name, arguments, _WEIGHTS, needs_weights)

    def adapted(
        _sentinel: None = None, labels: Any = None, predictions: Any = None, weights: Any = None
    ) -> Any:
        if _sentinel is not None:
            raise ValueError(
                "`metric_fn` requires named args: `labels`, `predictions`, and optionally "
                "`weights`."
            )
        named: dict[str, Any] = {} if weights is None else {weights_name or "weights": weights}
        if predictions_name:
            named[predictions_name] = predictions
        if labels_name and not predictions_name and labels_name == arguments[0]:
            return metric_fn(labels, predictions, **named)
        if labels_name:
            named[labels_name] = labels
        return metric_fn(*([] if predictions_name else [predictions]), **named)

    return adapted


def _match(name: str, arguments: Any, candidates: tuple[str, ...], needed: bool) -> str | None:
    found = [each for each in candidates if each in arguments]
    if len(found) > 1:
        raise ValueError(
            f"Ambiguous arguments {set(found)}, must provide only one of {set(candidates)}."
        )
    if not found:
        if needed:
            raise ValueError(f"{set(candidates)} missing from {name}({arguments}).")
        return None
    if found[0] != candidates[0]:
        tf.logging.warning(
            "Canonical arg %s missing from %s(%s), using %s.",
            candidates[0],
            name,
            arguments,
            found[0],
        )
    return found[0]


__all__ = ["MetricSpec"]
