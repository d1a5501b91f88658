"""Metrics that several heads of TensorFlow 1 have: pairs of a value and an update op."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tpu_estimator_compat.canned.keys import MetricKeys

Weights: TypeAlias = Any  # float or tensor
Pair = tuple[Any, Any]
_metrics = tf.compat.v1.metrics


def mean(values: tf.Tensor, weights: Weights, name: str) -> Pair:
    """The weighted mean of values."""
    return _metrics.mean(values, weights=weights, name=name)


def broadcast_mean(values: tf.Tensor, weights: Weights, name: str) -> Pair:
    """The mean of values, all of an example with the example's weight."""
    values = tf.cast(values, tf.float32)
    return mean(values, tf.__internal__.ops.broadcast_weights(weights, values), name)


def accuracy(labels: tf.Tensor, ids: tf.Tensor, weights: Weights, name: str) -> Pair:
    """The share of ids that are the labels."""
    return _metrics.accuracy(labels, ids, weights=weights, name=name)


def auc(
    labels: tf.Tensor, probabilities: tf.Tensor, weights: Weights, name: str, curve: str = "ROC"
) -> Pair:
    """The area under a curve over 200 thresholds."""
    weights = tf.__internal__.ops.broadcast_weights(weights, probabilities)
    return _metrics.auc(labels, probabilities, weights=weights, curve=curve, name=name)


def of_classes(labels: tf.Tensor, ids: tf.Tensor, weights: Weights) -> dict[str, Pair]:
    """Accuracy, precision and recall of one of two classes."""
    keys = MetricKeys
    return {
        keys.ACCURACY: accuracy(labels, ids, weights, keys.ACCURACY),
        keys.PRECISION: _metrics.precision(labels, ids, weights=weights, name=keys.PRECISION),
        keys.RECALL: _metrics.recall(labels, ids, weights=weights, name=keys.RECALL),
    }


def of_probabilities(
    labels: tf.Tensor, probabilities: tf.Tensor, weights: Weights
) -> dict[str, Pair]:
    """Means of probabilities and labels, areas under curves, and the baseline.

    The baseline is the accuracy of who always says the more frequent of two classes.
    """
    keys = MetricKeys
    labels_mean = broadcast_mean(labels, weights, keys.LABEL_MEAN)
    baseline = tuple(tf.maximum(share, 1.0 - share) for share in labels_mean)
    return {
        keys.PREDICTION_MEAN: broadcast_mean(probabilities, weights, keys.PREDICTION_MEAN),
        keys.LABEL_MEAN: labels_mean,
        keys.ACCURACY_BASELINE: (baseline[0], baseline[1]),
        keys.AUC: auc(labels, probabilities, weights, keys.AUC),
        keys.AUC_PR: auc(labels, probabilities, weights, keys.AUC_PR, curve="PR"),
    }


def at_thresholds(
    labels: tf.Tensor, probabilities: tf.Tensor, weights: Weights, thresholds: Iterable[float]
) -> dict[str, Pair]:
    """Accuracy, precision and recall at each threshold."""
    found = {}
    for threshold in thresholds:
        key = MetricKeys.ACCURACY_AT_THRESHOLD % threshold
        above = tf.cast(probabilities >= threshold, tf.float32)
        found[key] = accuracy(labels, above, weights, key)
        for name, metric in (
            (MetricKeys.PRECISION_AT_THRESHOLD, _metrics.precision_at_thresholds),
            (MetricKeys.RECALL_AT_THRESHOLD, _metrics.recall_at_thresholds),
        ):
            key = name % threshold
            value, update = metric(
                labels, probabilities, thresholds=(threshold,), weights=weights, name=key
            )
            found[key] = tf.squeeze(value), tf.squeeze(update)
    return found


def of_each_class(
    labels: tf.Tensor,
    probabilities: tf.Tensor,
    weights: Weights,
    classes: Iterable[int],
    vocabulary: Sequence[str] | None,
) -> dict[str, Pair]:
    """Mean probability and areas under curves of some of an example's possible classes."""
    keys = MetricKeys
    found = {}
    for i in classes:
        own_labels, own = labels[..., i : i + 1], probabilities[..., i : i + 1]
        probability, roc, pr = (
            (of_class % i if vocabulary is None else of_name % vocabulary[i])
            for of_class, of_name in (
                (keys.PROBABILITY_MEAN_AT_CLASS, keys.PROBABILITY_MEAN_AT_NAME),
                (keys.AUC_AT_CLASS, keys.AUC_AT_NAME),
                (keys.AUC_PR_AT_CLASS, keys.AUC_PR_AT_NAME),
            )
        )
        found[probability] = broadcast_mean(own, weights, probability)
        found[roc] = auc(own_labels, own, weights, roc)
        found[pr] = auc(own_labels, own, weights, pr, curve="PR")
    return found
