"""Keras metrics that several heads of TensorFlow 2 have. Keras 2, as TensorFlow had then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.keys import MetricKeys


def mean(name: str) -> Any:
    """A mean; update it with `update_mean` where weights are to be broadcast."""
    from tf_keras.metrics import Mean

    return Mean(name=name)


def update_mean(metric: Any, values: tf.Tensor, weights: float | tf.Tensor) -> None:
    """Adds values, each with its weight, or all of an example with the example's."""
    values = tf.cast(values, tf.float32)
    metric.update_state(
        values, sample_weight=tf.__internal__.ops.broadcast_weights(weights, values)
    )


def of_labels() -> dict[str, Any]:
    """Means of losses, predictions and labels."""
    names = MetricKeys.LOSS_MEAN, MetricKeys.PREDICTION_MEAN, MetricKeys.LABEL_MEAN
    return {name: mean(name) for name in names}


def at_thresholds(thresholds: Iterable[float]) -> dict[str, Any]:
    """Accuracy, precision and recall at each threshold."""
    from tf_keras import metrics

    found: dict[str, Any] = {}
    for threshold in thresholds:
        accuracy = MetricKeys.ACCURACY_AT_THRESHOLD % threshold
        precision = MetricKeys.PRECISION_AT_THRESHOLD % threshold
        recall = MetricKeys.RECALL_AT_THRESHOLD % threshold
        found[accuracy] = metrics.BinaryAccuracy(name=accuracy, threshold=threshold)
        found[precision] = metrics.Precision(name=precision, thresholds=threshold)
        found[recall] = metrics.Recall(name=recall, thresholds=threshold)
    return found


def update_at_thresholds(
    metric: Mapping[str, Any],
    thresholds: Iterable[float],
    labels: tf.Tensor,
    probabilities: tf.Tensor,
    weights: float | tf.Tensor,
) -> None:
    """Updates what `at_thresholds` made."""
    for threshold in thresholds:
        for key in (
            MetricKeys.ACCURACY_AT_THRESHOLD,
            MetricKeys.PRECISION_AT_THRESHOLD,
            MetricKeys.RECALL_AT_THRESHOLD,
        ):
            metric[key % threshold].update_state(labels, probabilities, sample_weight=weights)


def baseline_accuracy() -> Any:
    """The accuracy of who always says the more frequent of two classes.

    Updated with labels and weights. With a share `m` of positive labels, it is `max(m, 1 - m)`;
    without labels, 0.
    """
    from tf_keras.metrics import Mean

    class BaselineAccuracy(Mean):
        def result(self) -> tf.Tensor:
            more_frequent = tf.maximum(self.total, self.count - self.total)
            return tf.math.divide_no_nan(more_frequent, self.count)

    return BaselineAccuracy(name=MetricKeys.ACCURACY_BASELINE)
