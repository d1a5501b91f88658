"""Head for one of several classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import arguments, keras_metrics
from tpu_estimator_compat.canned.heads.arguments import Number
from tpu_estimator_compat.canned.heads.base import Metrics, StandardHead
from tpu_estimator_compat.canned.heads.problems import LossFn, MultiClass
from tpu_estimator_compat.canned.keys import MetricKeys, PredictionKeys


class MultiClassHead(StandardHead):
    """Head for one of several classes, with softmax cross entropy; logits are `[*D, n_classes]`.

    Args:
      n_classes: how many classes there are; more than 2.
      weight_column: key of the weights of examples in features, or a numeric column.
      label_vocabulary: the labels; None for labels that are ids from 0 to `n_classes - 1`.
      loss_reduction: how losses become one.
      loss_fn: takes `labels` and `logits`, and perhaps `features` and `loss_reduction`; returns
        losses of shape `[*D, 1]`.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        n_classes: Number,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        name: str | None = None,
    ):
        n_classes = arguments.checked_n_classes(n_classes)
        vocabulary = arguments.checked_vocabulary(label_vocabulary)
        arguments.check_vocabulary_size(vocabulary, n_classes)
        arguments.check_loss_fn(loss_fn, ("features", "loss_reduction"))
        problem = MultiClass(weight_column, loss_fn, n_classes, vocabulary)
        super().__init__(problem, loss_reduction, name)

    def _metrics(self) -> Metrics:
        from tf_keras import metrics

        return {
            MetricKeys.LOSS_MEAN: keras_metrics.mean(MetricKeys.LOSS_MEAN),
            MetricKeys.ACCURACY: metrics.Accuracy(name=MetricKeys.ACCURACY),
        }

    def _update_metrics(
        self,
        metric: Mapping[str, Any],
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        weights: float | tf.Tensor,
    ) -> None:
        ids = predictions[PredictionKeys.CLASS_IDS]
        metric[MetricKeys.ACCURACY].update_state(labels, ids, sample_weight=weights)
