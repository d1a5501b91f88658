"""Head for one of two classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import arguments, keras_metrics
from tpu_estimator_compat.canned.heads.base import Metrics, StandardHead
from tpu_estimator_compat.canned.heads.problems import Binary, LossFn
from tpu_estimator_compat.canned.keys import MetricKeys, PredictionKeys


class BinaryClassHead(StandardHead):
    """Head for one of two classes, with sigmoid cross entropy; logits are `[*D, 1]`.

    Args:
      weight_column: key of the weights of examples in features, or a numeric column.
      thresholds: probabilities above which an example counts as positive, for more metrics.
      label_vocabulary: the two labels; None for labels that are numbers from 0 to 1.
      loss_reduction: how losses become one.
      loss_fn: takes `labels` and `logits`, and perhaps `features` and `loss_reduction`; returns
        losses of shape `[*D, 1]`.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
    ):
        vocabulary = arguments.checked_vocabulary(label_vocabulary)
        self._thresholds = arguments.checked_thresholds(thresholds)
        arguments.check_loss_fn(loss_fn, ("features", "loss_reduction"))
        super().__init__(Binary(weight_column, loss_fn, vocabulary), loss_reduction, name)

    def _metrics(self) -> Metrics:
        from tf_keras import metrics

        return {
            **keras_metrics.of_labels(),
            MetricKeys.ACCURACY: metrics.Accuracy(name=MetricKeys.ACCURACY),
            MetricKeys.PRECISION: metrics.Precision(name=MetricKeys.PRECISION),
            MetricKeys.RECALL: metrics.Recall(name=MetricKeys.RECALL),
            MetricKeys.ACCURACY_BASELINE: keras_metrics.baseline_accuracy(),
            MetricKeys.AUC: metrics.AUC(name=MetricKeys.AUC),
            MetricKeys.AUC_PR: metrics.AUC(curve="PR", name=MetricKeys.AUC_PR),
            **keras_metrics.at_thresholds(self._thresholds),
        }

    def _update_metrics(
        self,
        metric: Mapping[str, Any],
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        weights: float | tf.Tensor,
    ) -> None:
        ids = predictions[PredictionKeys.CLASS_IDS]
        for key in (MetricKeys.ACCURACY, MetricKeys.PRECISION, MetricKeys.RECALL):
            metric[key].update_state(labels, ids, sample_weight=weights)
        logistic = predictions[PredictionKeys.LOGISTIC]
        keras_metrics.update_mean(metric[MetricKeys.PREDICTION_MEAN], logistic, weights)
        keras_metrics.update_mean(metric[MetricKeys.LABEL_MEAN], labels, weights)
        keras_metrics.update_mean(metric[MetricKeys.ACCURACY_BASELINE], labels, weights)
        for key in (MetricKeys.AUC, MetricKeys.AUC_PR):
            metric[key].update_state(labels, logistic, sample_weight=weights)
        keras_metrics.update_at_thresholds(metric, self._thresholds, labels, logistic, weights)
