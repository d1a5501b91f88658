"""Head for any number of classes at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import arguments, keras_metrics
from tpu_estimator_compat.canned.heads.base import Metrics, StandardHead
from tpu_estimator_compat.canned.heads.problems import LossFn, MultiLabel
from tpu_estimator_compat.canned.keys import MetricKeys, PredictionKeys

_OF_CLASS = {
    MetricKeys.PROBABILITY_MEAN_AT_CLASS: MetricKeys.PROBABILITY_MEAN_AT_NAME,
    MetricKeys.AUC_AT_CLASS: MetricKeys.AUC_AT_NAME,
    MetricKeys.AUC_PR_AT_CLASS: MetricKeys.AUC_PR_AT_NAME,
}


def checked_classes(
    classes: Iterable[int | str] | None, n_classes: int, vocabulary: Sequence[str] | None
) -> tuple[int, ...]:
    """Ids of the classes that get metrics of their own.

    Raises:
      ValueError: one is no class.
    """
    classes = tuple(classes or ())
    if not classes:
        return ()
    if isinstance(classes[0], str):
        if not vocabulary:
            raise ValueError(
                "label_vocabulary must be provided when classes_for_class_based_metrics are "
                "strings."
            )
        return tuple(list(vocabulary).index(str(name)) for name in classes)
    ids = tuple(int(each) for each in classes)
    for each in ids:
        if each < 0 or each >= n_classes:
            raise ValueError(
                f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. "
                f"Given: {each}"
            )
    return ids


def checked_n_labels(n_classes: int | None, vocabulary: Sequence[str] | None) -> int:
    """A number of classes of which an example may have several.

    Raises:
      ValueError: it is None or less than 2, or the vocabulary has another number of labels.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(
            f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
        )
    if vocabulary is not None and len(vocabulary) != n_classes:
        raise ValueError(
            f"Length of label_vocabulary must be n_classes ({n_classes}). Given: {len(vocabulary)}"
        )
    return n_classes


class MultiLabelHead(StandardHead):
    """Head for any number of classes, with sigmoid cross entropy; logits are `[*D, n_classes]`.

    Labels are 0 or 1 for each class, or sparse: the ids, or names, of an example's classes.

    Args:
      n_classes: how many classes there are; more than 1.
      weight_column: key of the weights of examples in features, or a numeric column.
      thresholds: probabilities above which a class counts as predicted, for more metrics.
      label_vocabulary: the labels; None for labels that are ids.
      loss_reduction: how losses become one.
      loss_fn: takes `labels` and `logits`, and perhaps `features` and `loss_reduction`; returns
        losses of shape `[*D, 1]`.
      classes_for_class_based_metrics: ids or labels of classes that get metrics of their own.
      name: ends the keys of summaries and metrics.

    Raises:
      ValueError: an argument is not of its kind.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: LossFn | None = None,
        classes_for_class_based_metrics: Iterable[int | str] | None = None,
        name: str | None = None,
    ):
        vocabulary = arguments.checked_vocabulary(label_vocabulary)
        n_classes = checked_n_labels(n_classes, vocabulary)
        self._thresholds = arguments.checked_thresholds(thresholds)
        arguments.check_loss_fn(loss_fn, ("features", "loss_reduction"))
        self._classes = checked_classes(classes_for_class_based_metrics, n_classes, vocabulary)
        self._vocabulary = vocabulary
        problem = MultiLabel(weight_column, loss_fn, n_classes, vocabulary)
        super().__init__(problem, loss_reduction, name)

    def _class_keys(self, class_id: int) -> list[str]:
        """Keys of the metrics of a class: of its mean probability, AUC, AUC of PR."""
        if self._vocabulary is None:
            return [key % class_id for key in _OF_CLASS]
        return [key % self._vocabulary[class_id] for key in _OF_CLASS.values()]

    def _metrics(self) -> Metrics:
        from tf_keras.metrics import AUC

        found = {
            MetricKeys.LOSS_MEAN: keras_metrics.mean(MetricKeys.LOSS_MEAN),
            MetricKeys.AUC: AUC(name=MetricKeys.AUC),
            MetricKeys.AUC_PR: AUC(curve="PR", name=MetricKeys.AUC_PR),
            **keras_metrics.at_thresholds(self._thresholds),
        }
        for class_id in self._classes:
            probability, auc, auc_pr = self._class_keys(class_id)
            found[probability] = keras_metrics.mean(probability)
            found[auc] = AUC(name=auc)
            found[auc_pr] = AUC(curve="PR", name=auc_pr)
        return found

    def _update_metrics(
        self,
        metric: Mapping[str, Any],
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        weights: float | tf.Tensor,
    ) -> None:
        probabilities = predictions[PredictionKeys.PROBABILITIES]
        for key in (MetricKeys.AUC, MetricKeys.AUC_PR):
            metric[key].update_state(labels, probabilities, sample_weight=weights)
        keras_metrics.update_at_thresholds(metric, self._thresholds, labels, probabilities, weights)
        for class_id in self._classes:
            probability, *aucs = self._class_keys(class_id)
            here = slice(class_id, class_id + 1)
            of_class = probabilities[..., here]
            keras_metrics.update_mean(metric[probability], of_class, weights)
            for key in aucs:
                metric[key].update_state(labels[..., here], of_class, sample_weight=weights)
