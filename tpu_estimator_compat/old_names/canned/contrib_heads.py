"""The functions of `tf.contrib.estimator` that make heads in the style of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.old_names.canned.wheel.canned import head as v1
from tpu_estimator_compat.old_names.canned.wheel.canned.metric_keys import MetricKeys
from tpu_estimator_compat.old_names.canned.wheel.canned.prediction_keys import PredictionKeys
from tpu_estimator_compat.old_names.canned.wheel.head import multi_head as merging
from tpu_estimator_compat.old_names.canned.wheel.head import multi_label_head as multi_label
from tpu_estimator_compat.old_names.canned.wheel.head import regression_head as regression
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys, TPUEstimatorSpec

LossFn = Callable[..., tf.Tensor]
_Reduction = tf.compat.v1.losses.Reduction
_MEAN = _Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> Any:
    return v1._binary_logistic_head_with_sigmoid_cross_entropy_loss(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> Any:
    return v1._multi_class_head_with_softmax_cross_entropy_loss(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    name: str | None = None,
) -> Any:
    return v1._regression_head(
        weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name
    )


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Any:
    """A head for regression with counts."""
    of_v2 = regression.PoissonRegressionHead(compute_full_loss=compute_full_loss)
    return regression_head(
        weight_column, label_dimension, loss_reduction, of_v2._loss_fn, tf.exp, name
    )


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None
) -> Any:
    """A head for regression with values from 0 to 1."""
    loss_fn = regression.LogisticRegressionHead()._loss_fn
    return regression_head(weight_column, 1, loss_reduction, loss_fn, tf.sigmoid, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    classes_for_class_based_metrics: Iterable[int | str] | None = None,
    name: str | None = None,
) -> Any:
    """A head for classification with any number of labels per example."""
    if loss_fn:
        v1._validate_loss_fn_args(loss_fn)
    if loss_reduction not in _Reduction.all() or loss_reduction == _Reduction.NONE:
        raise ValueError(f"Invalid loss_reduction: {loss_reduction}")
    head = multi_label.MultiLabelHead(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_fn=loss_fn,
        classes_for_class_based_metrics=classes_for_class_based_metrics,
        name=name,
    )
    return _MultiLabelHead(head, loss_reduction)


class _MultiLabelHead(v1._Head):
    """The `MultiLabelHead` of TensorFlow 2, with the metrics and training steps of TensorFlow 1."""

    def __init__(self, head: Any, loss_reduction: str):
        self._head = head
        self._loss_reduction = loss_reduction

    @property
    def name(self) -> str | None:
        return self._head.name

    @property
    def logits_dimension(self) -> int:
        return self._head.logits_dimension

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        logits = tf.convert_to_tensor(logits)
        labels = self._head._processed_labels(logits, labels)
        losses, weights = self._head._unweighted_loss_and_weights(logits, labels, features)
        loss = tf.compat.v1.losses.compute_weighted_loss(
            losses, weights=weights, reduction=self._loss_reduction
        )
        return v1.LossSpec(loss, losses, weights, labels)

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> TPUEstimatorSpec:
        with tf.name_scope(self.name or "head"):
            logits = v1._check_logits_final_dim(logits, self.logits_dimension)
            predictions = self._head.predictions(logits)
            if mode == ModeKeys.PREDICT:
                spec = self._head.create_estimator_spec(features, mode, logits)
                return TPUEstimatorSpec(mode, predictions, export_outputs=spec.export_outputs)
            made = self.create_loss(features, mode, logits, labels)
            regularization = tf.add_n(regularization_losses) if regularization_losses else None
            loss = made.training_loss
            if regularization is not None:
                loss = tf.add_n([loss, regularization])
            if mode == ModeKeys.EVAL:
                given = {
                    "labels": made.processed_labels,
                    "probabilities": predictions[PredictionKeys.PROBABILITIES],
                    "weights": made.weights,
                    "losses": made.unreduced_loss,
                    "regularization": regularization,
                }
                metrics = v1._create_eval_metrics_tuple(self._metric_ops, given)
                return TPUEstimatorSpec(mode, predictions, loss, eval_metrics=metrics)
            train_op = _train_op(loss, optimizer, train_op_fn)
            mean_loss = None
            if self._loss_reduction == _Reduction.SUM:
                weights = tf.reduce_sum(made.weights * tf.ones_like(made.unreduced_loss))
                mean_loss = made.training_loss / weights
        scalars = (loss, mean_loss, regularization)
        keys = (MetricKeys.LOSS, MetricKeys.LOSS_MEAN, MetricKeys.LOSS_REGULARIZATION)
        with tf.name_scope(""):
            for key, scalar in zip(keys, scalars, strict=True):
                if scalar is not None:
                    tf.compat.v1.summary.scalar(v1._summary_key(self.name, key), scalar)
        return TPUEstimatorSpec(mode, predictions, loss, train_op)

    def _metric_ops(
        self, labels: Any, probabilities: Any, weights: Any, losses: Any, regularization: Any
    ) -> dict[str, tuple[Any, Any]]:
        head, mean, found = self._head, tf.compat.v1.metrics.mean, {}
        with tf.name_scope("metrics"):
            found[head._loss_mean_key] = mean(losses, weights, name=MetricKeys.LOSS_MEAN)
            found[head._auc_key] = v1._auc(labels, probabilities, weights, name=MetricKeys.AUC)
            found[head._auc_pr_key] = v1._auc(
                labels, probabilities, weights, curve="PR", name=MetricKeys.AUC_PR
            )
            if regularization is not None:
                key = MetricKeys.LOSS_REGULARIZATION
                found[head._loss_regularization_key] = mean(regularization, name=key)
            for i, threshold in enumerate(head._thresholds):
                for keys, metric in (
                    (head._accuracy_keys, v1._accuracy_at_threshold),
                    (head._precision_keys, v1._precision_at_threshold),
                    (head._recall_keys, v1._recall_at_threshold),
                ):
                    found[keys[i]] = metric(labels, probabilities, weights, threshold, keys[i])
            for i, each in enumerate(head._classes_for_class_based_metrics):
                own_labels, own = (x[..., each : each + 1] for x in (labels, probabilities))
                roc, pr = head._auc_keys[i], head._auc_pr_keys[i]
                key = head._prob_keys[i]
                found[key] = v1._predictions_mean(own, weights, name=key)
                found[roc] = v1._auc(own_labels, own, weights, name=roc)
                found[pr] = v1._auc(own_labels, own, weights, curve="PR", name=pr)
        return found


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> Any:
    return _MultiHead(merging.MultiHead(heads, head_weights))


class _MultiHead(v1._Head):
    """Splits logits and merges the specs of TensorFlow 1's heads, with methods of a `MultiHead`."""

    def __init__(self, merging: Any):
        self._merging = merging

    @property
    def name(self) -> str:
        return self._merging.name

    @property
    def logits_dimension(self) -> int:
        return self._merging.logits_dimension

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        of_head = self._merging._check_logits_and_labels(logits, labels)
        made = {
            head.name: head.create_loss(features, mode, of_head[head.name], labels[head.name])
            for head in self._merging._heads
        }
        return v1.LossSpec(
            self._merged([spec.training_loss for spec in made.values()]),
            {name: spec.unreduced_loss for name, spec in made.items()},
            {name: spec.weights for name, spec in made.items()},
            {name: spec.processed_labels for name, spec in made.items()},
        )

    def _merged(self, losses: list[tf.Tensor]) -> tf.Tensor:
        weights = self._merging._head_weights or [1] * len(losses)
        return tf.add_n([loss * weight for loss, weight in zip(losses, weights, strict=True)])

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> EstimatorSpec:
        of_head = self._merging._check_logits_and_labels(logits, labels)
        specs = {
            head.name: head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=of_head[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=lambda unused_loss: tf.no_op(),
            )
            for head in self._merging._heads
        }
        predictions = {
            (name, key): value
            for name, spec in specs.items()
            for key, value in spec.predictions.items()
        }
        if mode == ModeKeys.PREDICT:
            outputs = self._merging._merge_predict_export_outputs([*specs.values()])
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        losses = {name: spec.loss for name, spec in specs.items()}
        loss = self._merged([*losses.values()])
        if regularization_losses:
            loss = tf.add_n([loss, *regularization_losses])
        if mode == ModeKeys.EVAL:
            metrics = {
                f"{MetricKeys.LOSS}/{name}": tf.compat.v1.metrics.mean(own)
                for name, own in losses.items()
            }
            for spec in specs.values():
                metrics.update(spec.eval_metric_ops or {})
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        if mode != ModeKeys.TRAIN:
            raise ValueError(f"mode={mode} unrecognized")
        train_op = _train_op(loss, optimizer, train_op_fn)
        with tf.name_scope(""):
            tf.compat.v1.summary.scalar(MetricKeys.LOSS, loss)
        return EstimatorSpec(mode, predictions, loss, train_op)


def _train_op(
    loss: tf.Tensor, optimizer: Any, train_op_fn: Callable[[tf.Tensor], Any] | None
) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        step = tf.compat.v1.train.get_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
    elif train_op_fn is not None:
        train_op = train_op_fn(loss)
    else:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    return v1._append_update_ops(train_op)
