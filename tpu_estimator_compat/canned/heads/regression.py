"""Heads for numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import arguments, keras_metrics, tensors
from tpu_estimator_compat.canned.heads.base import Metrics, StandardHead
from tpu_estimator_compat.canned.heads.problems import LossFn, Regression
from tpu_estimator_compat.canned.keys import MetricKeys, PredictionKeys


class RegressionHead(StandardHead):
    """Head for numbers, with mean squared error; logits are `[*D, label_dimension]`.

    Args:
      label_dimension: numbers per example.
      weight_column: key of the weights of examples in features, or a numeric column.
      loss_reduction: how losses become one.
      loss_fn: takes `labels` and `logits`, and perhaps `features` and `loss_reduction`; returns
        losses of shape `[*D, label_dimension]`.
      inverse_link_fn: makes predictions of logits; None where they are the same.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        name: str | None = None,
    ):
        arguments.check_loss_fn(loss_fn, ("features", "loss_reduction"))
        problem = Regression(weight_column, loss_fn, label_dimension, inverse_link_fn)
        super().__init__(problem, loss_reduction, name)

    def _metrics(self) -> Metrics:
        return keras_metrics.of_labels()

    def _update_metrics(
        self,
        metric: Mapping[str, Any],
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        weights: float | tf.Tensor,
    ) -> None:
        metric[MetricKeys.LABEL_MEAN].update_state(labels, sample_weight=weights)
        predicted = predictions[PredictionKeys.PREDICTIONS]
        keras_metrics.update_mean(metric[MetricKeys.PREDICTION_MEAN], predicted, weights)


class PoissonRegressionHead(RegressionHead):
    """Head for counts, with `tf.nn.log_poisson_loss`; predictions are `exp(logits)`.

    Args:
      label_dimension: numbers per example.
      weight_column: key of the weights of examples in features, or a numeric column.
      loss_reduction: how losses become one.
      compute_full_loss: add Stirling's approximation of `log(labels!)`.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ):
        def loss_fn(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
            return tf.nn.log_poisson_loss(labels, logits, compute_full_loss)

        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, tf.exp, name)


class LogisticRegressionHead(RegressionHead):
    """Head for numbers from 0 to 1, with sigmoid cross entropy; predictions are `sigmoid(logits)`.

    Args:
      weight_column: key of the weights of examples in features, or a numeric column.
      loss_reduction: how losses become one.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = "sum_over_batch_size",
        name: str | None = None,
    ):
        super().__init__(1, weight_column, loss_reduction, logistic_loss, tf.sigmoid, name)


def logistic_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Sigmoid cross entropy of labels from 0 to 1; the step raises an error for others."""
    labels = tensors.checked_range(labels, 2, "Labels must be in range [0, 1]")
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
