"""The functions of `tf.contrib.estimator` that made heads, of the kind that TensorFlow 1 had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned.heads import multi_head as merging
from tpu_estimator_compat.canned.heads import v1
from tpu_estimator_compat.canned.heads.arguments import Number
from tpu_estimator_compat.canned.heads.problems import LossFn
from tpu_estimator_compat.canned.heads.regression import logistic_loss
from tpu_estimator_compat.canned.keys import MetricKeys
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys

_MEAN = tf.compat.v1.losses.Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> v1._Head:
    """A head for one of two classes; see `BinaryClassHead`."""
    return v1._BinaryHead(
        weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def multi_class_head(
    n_classes: Number,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> v1._Head:
    """A head for one of several classes; see `MultiClassHead`."""
    return v1._MultiClassHead(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    classes_for_class_based_metrics: Iterable[int | str] | None = None,
    name: str | None = None,
) -> v1._Head:
    """A head for any number of classes; see `MultiLabelHead`."""
    return v1._MultiLabelHead(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_reduction,
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: LossFn | None = None,
    inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    name: str | None = None,
) -> v1._Head:
    """A head for numbers; see `RegressionHead`."""
    return v1._RegressionHead(
        weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name
    )


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> v1._Head:
    """A head for counts; see `PoissonRegressionHead`."""

    def loss_fn(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss)

    return v1._RegressionHead(weight_column, label_dimension, loss_reduction, loss_fn, tf.exp, name)


def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _MEAN, name: str | None = None
) -> v1._Head:
    """A head for numbers from 0 to 1; see `LogisticRegressionHead`."""
    return v1._RegressionHead(weight_column, 1, loss_reduction, logistic_loss, tf.sigmoid, name)


def multi_head(heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> v1._Head:
    """A head of several heads; see `MultiHead`."""
    return _MultiHead(heads, head_weights)


class _MultiHead(v1._Head):
    """Head of several heads of TensorFlow 1."""

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None):
        merging.check_heads(heads, head_weights)
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> Any:
        return sum(head.logits_dimension for head in self._heads)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> v1.LossSpec:
        """The merged loss; the other fields are dicts by the names of heads."""
        of_head = merging.split(self._heads, logits, labels)
        made = {
            head.name: head.create_loss(features, mode, of_head[head.name], labels[head.name])
            for head in self._heads
        }
        losses = [spec.training_loss for spec in made.values()]
        return v1.LossSpec(
            merging.merged_loss(losses, self._head_weights, None),
            {name: spec.unreduced_loss for name, spec in made.items()},
            {name: spec.weights for name, spec in made.items()},
            {name: spec.processed_labels for name, spec in made.items()},
        )

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
        of_head = merging.split(self._heads, logits, labels)
        specs = {
            head.name: head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=of_head[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=merging.without_step,
            )
            for head in self._heads
        }
        predictions = {
            (name, key): value
            for name, spec in specs.items()
            for key, value in spec.predictions.items()
        }
        if mode == ModeKeys.PREDICT:
            outputs = merging.merged_outputs({name: s.export_outputs for name, s in specs.items()})
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        losses = {name: spec.loss for name, spec in specs.items()}
        loss = merging.merged_loss([*losses.values()], self._head_weights, regularization_losses)
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
        train_op = v1.create_train_op(loss, optimizer, train_op_fn)
        v1.create_summaries({MetricKeys.LOSS: loss}, None)
        return EstimatorSpec(mode, predictions, loss, train_op)
