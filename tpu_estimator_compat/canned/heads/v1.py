"""Heads of TensorFlow 1: those of its canned models, and functions that made such heads.

The functions are those of `tensorflow.python.estimator.canned.head`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.canned import keys
from tpu_estimator_compat.canned.heads import arguments, metrics_v1, tensors
from tpu_estimator_compat.canned.heads.arguments import Number
from tpu_estimator_compat.canned.heads.multi_label import checked_classes, checked_n_labels
from tpu_estimator_compat.canned.heads.problems import (
    Binary,
    LossFn,
    MultiClass,
    MultiLabel,
    Problem,
    Regression,
)
from tpu_estimator_compat.canned.keys import MetricKeys, PredictionKeys
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys
from tpu_estimator_compat.spec.tpu_estimator_spec import TPUEstimatorSpec

_Reduction = tf.compat.v1.losses.Reduction
MetricOps = dict[str, tuple[Any, Any]]


class LossSpec(NamedTuple):
    """What a head of TensorFlow 1 makes of labels.

    Attributes:
      training_loss: the loss, a scalar, without regularization.
      unreduced_loss: losses of examples before weights.
      weights: of examples; 1.0 where they have none.
      processed_labels: labels as the loss takes them.
    """

    training_loss: tf.Tensor
    unreduced_loss: tf.Tensor
    weights: float | tf.Tensor
    processed_labels: tf.Tensor


class _Head(abc.ABC):
    """The interface of heads of TensorFlow 1; see `Head` for that of TensorFlow 2."""

    @property
    @abc.abstractmethod
    def name(self) -> str | None:
        """Ends the keys of its summaries and metrics."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> Any:
        """Size of the last dimension of logits."""

    @abc.abstractmethod
    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """A `LossSpec`."""

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
        """What a `model_fn` of an `Estimator` returns.

        Args:
          features: of the batch; weights are taken of them.
          mode: a `ModeKeys`.
          logits: of shape `[*D, logits_dimension]`.
          labels: of the batch; None in PREDICT mode.
          optimizer: a `tf.compat.v1.train.Optimizer`; in TRAIN mode, this or `train_op_fn`.
          train_op_fn: makes a training step of the loss.
          regularization_losses: scalars to add to the loss.

        Raises:
          ValueError: both or none of `optimizer` and `train_op_fn` in TRAIN mode.
          NotImplementedError: a head of one's own does not say how.
        """
        try:
            spec = self._create_tpu_estimator_spec(
                features, mode, logits, labels, optimizer, train_op_fn, regularization_losses
            )
        except NotImplementedError as error:
            raise NotImplementedError(
                "Subclasses of _Head must implement `create_estimator_spec()` or "
                "_create_tpu_estimator_spec()."
            ) from error
        return spec.as_estimator_spec()

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
        """The same for a `TPUEstimator`."""
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


class _StandardHead(_Head):
    """A head for one kind of problem.

    Args:
      problem: what is learned.
      loss_reduction: how losses become one, of `tf.compat.v1.losses.Reduction`.
      name: see `_Head.name`.

    Raises:
      ValueError: `loss_reduction` is none of these, or NONE.
    """

    _metric_predictions: tuple[str, ...]
    """Keys of the predictions that metrics are made of."""

    def __init__(self, problem: Problem, loss_reduction: str, name: str | None):
        arguments.check_reduction(loss_reduction, _Reduction)
        self._problem, self._loss_reduction, self._name = problem, loss_reduction, name

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def logits_dimension(self) -> Any:
        return self._problem.dimension

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> LossSpec:
        logits = tf.convert_to_tensor(logits)
        labels = self._problem.labels(labels, logits)
        losses = self._problem.losses(labels, logits, features)
        weights = self._problem.weights(features, logits)
        loss = tf.compat.v1.losses.compute_weighted_loss(
            losses, weights=weights, reduction=self._loss_reduction
        )
        return LossSpec(loss, losses, weights, labels)

    @abc.abstractmethod
    def _metric_ops(
        self,
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        losses: tf.Tensor,
        weights: float | tf.Tensor,
    ) -> MetricOps:
        """Values and update ops of metrics, by their keys without the head's name."""

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
        with tf.name_scope(self._name or "head"):
            logits = tensors.checked_logits(logits, self.logits_dimension)
            with tf.name_scope("predictions"):
                predictions = self._problem.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._problem.export_outputs(predictions)
                return TPUEstimatorSpec(mode, predictions, export_outputs=outputs)
            made = self.create_loss(features, mode, logits, labels)
            regularization = tf.add_n(regularization_losses) if regularization_losses else None
            loss = made.training_loss
            if regularization is not None:
                loss = tf.add_n([loss, regularization])
            if mode == ModeKeys.EVAL:
                metrics = self._eval_metrics(predictions, made, regularization)
                return TPUEstimatorSpec(mode, predictions, loss, eval_metrics=metrics)
            train_op = create_train_op(loss, optimizer, train_op_fn)
            mean_loss = self._mean_loss(made)
        create_summaries(
            {
                MetricKeys.LOSS: loss,
                MetricKeys.LOSS_MEAN: mean_loss,
                MetricKeys.LOSS_REGULARIZATION: regularization,
            },
            self._name,
        )
        return TPUEstimatorSpec(mode, predictions, loss, train_op)

    def _mean_loss(self, made: LossSpec) -> tf.Tensor | None:
        """The mean of a loss that is a sum; None for others, which are means already."""
        if self._loss_reduction != _Reduction.SUM:
            return None
        weights = tf.reduce_sum(made.weights * tf.ones_like(made.unreduced_loss))
        return made.training_loss / weights

    def _eval_metrics(
        self,
        predictions: Mapping[str, tf.Tensor],
        made: LossSpec,
        regularization: tf.Tensor | None,
    ) -> tuple[Callable[..., MetricOps], dict[str, tf.Tensor]]:
        """`eval_metrics` of a spec."""
        given = {
            "labels": made.processed_labels,
            "losses": made.unreduced_loss,
            "weights": made.weights,
            "regularization": regularization,
            **{key: predictions[key] for key in self._metric_predictions},
        }
        sent = {name: value for name, value in given.items() if tf.is_tensor(value)}
        own = ("labels", "losses", "weights", "regularization")

        def metric_fn(**tensors: tf.Tensor) -> MetricOps:
            values = {**given, **tensors}
            labels, losses, weights, regularization = (values.pop(name) for name in own)
            with tf.name_scope("metrics"):
                found = self._metric_ops(labels, values, losses, weights)
                if regularization is not None:
                    key = MetricKeys.LOSS_REGULARIZATION
                    found[key] = tf.compat.v1.metrics.mean(regularization, name=key)
            return {keys.named(key, self._name): pair for key, pair in found.items()}

        return metric_fn, sent


class _BinaryHead(_StandardHead):
    """One of two classes."""

    _metric_predictions = (PredictionKeys.LOGISTIC, PredictionKeys.CLASS_IDS)

    def __init__(
        self,
        weight_column: Any,
        thresholds: Iterable[float] | None,
        label_vocabulary: Sequence[str] | None,
        loss_reduction: str,
        loss_fn: LossFn | None,
        name: str | None,
    ):
        self._thresholds = arguments.checked_thresholds(thresholds)
        vocabulary = arguments.checked_vocabulary(label_vocabulary, TypeError)
        arguments.check_loss_fn(loss_fn, ("features",))
        super().__init__(Binary(weight_column, loss_fn, vocabulary), loss_reduction, name)

    def _metric_ops(
        self,
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        losses: tf.Tensor,
        weights: float | tf.Tensor,
    ) -> MetricOps:
        ids = predictions[PredictionKeys.CLASS_IDS]
        logistic = predictions[PredictionKeys.LOGISTIC]
        return {
            MetricKeys.LOSS_MEAN: metrics_v1.mean(losses, weights, MetricKeys.LOSS_MEAN),
            **metrics_v1.of_classes(labels, ids, weights),
            **metrics_v1.of_probabilities(labels, logistic, weights),
            **metrics_v1.at_thresholds(labels, logistic, weights, self._thresholds),
        }


class _MultiClassHead(_StandardHead):
    """One of several classes."""

    _metric_predictions = (PredictionKeys.CLASS_IDS,)

    def __init__(
        self,
        n_classes: Number,
        weight_column: Any,
        label_vocabulary: Sequence[str] | None,
        loss_reduction: str,
        loss_fn: LossFn | None,
        name: str | None,
    ):
        vocabulary = arguments.checked_vocabulary(label_vocabulary)
        arguments.check_loss_fn(loss_fn, ("features",))
        n_classes = arguments.checked_n_classes(n_classes)
        problem = MultiClass(weight_column, loss_fn, n_classes, vocabulary)
        super().__init__(problem, loss_reduction, name)

    def _metric_ops(
        self,
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        losses: tf.Tensor,
        weights: float | tf.Tensor,
    ) -> MetricOps:
        ids = predictions[PredictionKeys.CLASS_IDS]
        return {
            MetricKeys.LOSS_MEAN: metrics_v1.mean(losses, weights, MetricKeys.LOSS_MEAN),
            MetricKeys.ACCURACY: metrics_v1.accuracy(labels, ids, weights, MetricKeys.ACCURACY),
        }


class _MultiLabelHead(_StandardHead):
    """Any number of classes."""

    _metric_predictions = (PredictionKeys.PROBABILITIES,)

    def __init__(
        self,
        n_classes: int,
        weight_column: Any,
        thresholds: Iterable[float] | None,
        label_vocabulary: Sequence[str] | None,
        loss_reduction: str,
        loss_fn: LossFn | None,
        classes: Iterable[int | str] | None,
        name: str | None,
    ):
        self._thresholds = arguments.checked_thresholds(thresholds)
        vocabulary = arguments.checked_vocabulary(label_vocabulary)
        n_classes = checked_n_labels(n_classes, vocabulary)
        arguments.check_loss_fn(loss_fn, ("features",))
        self._classes = checked_classes(classes, n_classes, vocabulary)
        self._vocabulary = vocabulary
        problem = MultiLabel(weight_column, loss_fn, n_classes, vocabulary)
        super().__init__(problem, loss_reduction, name)

    def _metric_ops(
        self,
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        losses: tf.Tensor,
        weights: float | tf.Tensor,
    ) -> MetricOps:
        probabilities = predictions[PredictionKeys.PROBABILITIES]
        return {
            MetricKeys.LOSS_MEAN: metrics_v1.mean(losses, weights, MetricKeys.LOSS_MEAN),
            MetricKeys.AUC: metrics_v1.auc(labels, probabilities, weights, MetricKeys.AUC),
            MetricKeys.AUC_PR: metrics_v1.auc(
                labels, probabilities, weights, MetricKeys.AUC_PR, curve="PR"
            ),
            **metrics_v1.at_thresholds(labels, probabilities, weights, self._thresholds),
            **metrics_v1.of_each_class(
                labels, probabilities, weights, self._classes, self._vocabulary
            ),
        }


class _RegressionHead(_StandardHead):
    """Numbers."""

    _metric_predictions = (PredictionKeys.PREDICTIONS,)

    def __init__(
        self,
        weight_column: Any,
        label_dimension: int,
        loss_reduction: str,
        loss_fn: LossFn | None,
        inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None,
        name: str | None,
    ):
        arguments.check_loss_fn(loss_fn, ("features",))
        problem = Regression(weight_column, loss_fn, label_dimension, inverse_link_fn)
        super().__init__(problem, loss_reduction, name)

    def _metric_ops(
        self,
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        losses: tf.Tensor,
        weights: float | tf.Tensor,
    ) -> MetricOps:
        predicted = predictions[PredictionKeys.PREDICTIONS]
        return {
            MetricKeys.LOSS_MEAN: metrics_v1.mean(losses, weights, MetricKeys.LOSS_MEAN),
            MetricKeys.PREDICTION_MEAN: metrics_v1.broadcast_mean(
                predicted, weights, MetricKeys.PREDICTION_MEAN
            ),
            MetricKeys.LABEL_MEAN: metrics_v1.mean(labels, weights, MetricKeys.LABEL_MEAN),
        }


def create_train_op(
    loss: tf.Tensor, optimizer: Any, train_op_fn: Callable[[tf.Tensor], Any] | None
) -> Any:
    """The training step of a head; see `_Head.create_estimator_spec`."""
    if optimizer is not None:
        if train_op_fn is not None:
            raise ValueError("train_op_fn and optimizer cannot both be set.")
        step = tf.compat.v1.train.get_global_step()
        train_op = optimizer.minimize(loss, global_step=step)
    elif train_op_fn is not None:
        train_op = train_op_fn(loss)
    else:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    updates = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *updates) if updates else train_op


def create_summaries(scalars: Mapping[str, tf.Tensor | None], name: str | None) -> None:
    """Summaries of a training step, but for those that are None."""
    with tf.name_scope(""):
        for key, scalar in scalars.items():
            if scalar is not None:
                tf.compat.v1.summary.scalar(keys.named(key, name), scalar)


def _binary_logistic_head_with_sigmoid_cross_entropy_loss(
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _Reduction.SUM,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> _Head:
    return _BinaryHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def _multi_class_head_with_softmax_cross_entropy_loss(
    n_classes: Number,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = _Reduction.SUM,
    loss_fn: LossFn | None = None,
    name: str | None = None,
) -> _Head:
    return _MultiClassHead(
        n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def _regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _Reduction.SUM,
    loss_fn: LossFn | None = None,
    inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    name: str | None = None,
) -> _Head:
    return _RegressionHead(
        weight_column, label_dimension, loss_reduction, loss_fn, inverse_link_fn, name
    )


def _binary_logistic_or_multi_class_head(
    n_classes: int,
    weight_column: Any,
    label_vocabulary: Sequence[str] | None,
    loss_reduction: str,
) -> _Head:
    if n_classes == 2:
        return _binary_logistic_head_with_sigmoid_cross_entropy_loss(
            weight_column, None, label_vocabulary, loss_reduction
        )
    return _multi_class_head_with_softmax_cross_entropy_loss(
        n_classes, weight_column, label_vocabulary, loss_reduction
    )
