"""Heads of TensorFlow 2: the interface, and what those that come with this package share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.canned import keys
from tpu_estimator_compat.canned.heads import arguments, keras_metrics, tensors
from tpu_estimator_compat.canned.heads.problems import Problem
from tpu_estimator_compat.canned.keys import MetricKeys
from tpu_estimator_compat.canned.replicas import share_of_loss
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys
from tpu_estimator_compat.spec.tpu_estimator_spec import TPUEstimatorSpec

Metrics = dict[str, Any]


class Head(abc.ABC):
    """The top of a model: makes predictions, loss, metrics and a training step of its logits.

    A head of one's own defines the properties and `loss`, `predictions`, `metrics`,
    `update_metrics`, and one of `create_estimator_spec` and `_create_tpu_estimator_spec`.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str | None:
        """Ends the keys of its summaries and metrics; None for the sole head of a model."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> Any:
        """Size of the last dimension of logits."""

    @property
    @abc.abstractmethod
    def loss_reduction(self) -> str:
        """How losses become one: a `tf.keras.losses.Reduction`."""

    @abc.abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> tf.Tensor:
        """The loss of training and evaluation, a scalar, with regularization losses added."""

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Iterable[str] | None = None) -> dict[Any, tf.Tensor]:
        """Predictions by key; None for all keys."""

    @abc.abstractmethod
    def metrics(self, regularization_losses: Sequence[tf.Tensor] | None = None) -> Metrics:
        """New Keras metrics, by key."""

    @abc.abstractmethod
    def update_metrics(
        self,
        eval_metrics: Metrics,
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> Metrics:
        """Updates metrics, and returns them."""

    def _summary_key(self, key: str) -> str:
        return keys.named(key, self.name)

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> EstimatorSpec:
        """What a `model_fn` of an `Estimator` returns.

        Args:
          features: of the batch; weights are taken of them.
          mode: a `ModeKeys`.
          logits: of shape `[*D, logits_dimension]`.
          labels: of the batch; None in PREDICT mode.
          optimizer: of Keras 2 (`tf_keras`); in TRAIN mode, this or `train_op_fn`.
          trainable_variables: list or tuple of what `optimizer` updates.
          train_op_fn: makes a training step of the loss.
          update_ops: ops that run with every step, such as those of batch normalization.
          regularization_losses: scalars to add to the loss.

        Raises:
          ValueError: both or none of `optimizer` and `train_op_fn` in TRAIN mode, or an argument
            is not of its kind.
          NotImplementedError: a head of one's own does not say how.
        """
        try:
            spec = self._create_tpu_estimator_spec(
                features=features,
                mode=mode,
                logits=logits,
                labels=labels,
                optimizer=optimizer,
                trainable_variables=trainable_variables,
                train_op_fn=train_op_fn,
                update_ops=update_ops,
                regularization_losses=regularization_losses,
            )
        except NotImplementedError as error:
            raise NotImplementedError(
                "Subclasses of Head must implement `create_estimator_spec()` or "
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
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> TPUEstimatorSpec:
        """The same for a `TPUEstimator`."""
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


class StandardHead(Head):
    """A head for one kind of problem.

    Args:
      problem: what is learned.
      loss_reduction: how losses become one.
      name: see `Head.name`.

    Raises:
      ValueError: `loss_reduction` is none of `tf.keras.losses.Reduction`, or NONE.
    """

    def __init__(self, problem: Problem, loss_reduction: str, name: str | None):
        from tf_keras.losses import Reduction

        arguments.check_reduction(loss_reduction, Reduction)
        self._problem, self._loss_reduction, self._name = problem, loss_reduction, name

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def logits_dimension(self) -> Any:
        return self._problem.dimension

    @property
    def loss_reduction(self) -> str:
        return self._loss_reduction

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> tf.Tensor:
        from tf_keras.__internal__.losses import compute_weighted_loss

        with tf.name_scope("losses"):
            _, _, losses, weights = self._weighted(labels, logits, features)
            loss = compute_weighted_loss(losses, weights, self._loss_reduction)
            return loss if regularization_losses is None else loss + tf.add_n(regularization_losses)

    def _weighted(
        self, labels: Any, logits: Any, features: Any
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, float | tf.Tensor]:
        """Logits and labels, checked, losses of examples, and their weights."""
        logits = tensors.checked_logits(logits, self.logits_dimension)
        labels = self._problem.labels(labels, logits)
        losses = self._problem.losses(labels, logits, features)
        return logits, labels, losses, self._problem.weights(features, logits)

    def predictions(self, logits: Any, keys: Iterable[str] | None = None) -> dict[Any, tf.Tensor]:
        with tf.name_scope("predictions"):
            logits = tensors.checked_logits(logits, self.logits_dimension)
            found = self._problem.predictions(logits)
        wanted = list(keys or found)
        for key in wanted:
            if key not in found:
                raise ValueError(
                    f"Prediction key must be in PredictionKeys, given: {key}."
                    f"Valid prediction keys include {list(found)}."
                )
        return {key: value for key, value in found.items() if key in wanted}

    def metrics(self, regularization_losses: Sequence[tf.Tensor] | None = None) -> Metrics:
        with tf.name_scope("metrics"):
            found = {self._summary_key(key): make for key, make in self._metrics().items()}
            if regularization_losses is not None:
                key = MetricKeys.LOSS_REGULARIZATION
                found[self._summary_key(key)] = keras_metrics.mean(key)
        return found

    @abc.abstractmethod
    def _metrics(self) -> Metrics:
        """New metrics, by their keys without the head's name."""

    def update_metrics(
        self,
        eval_metrics: Metrics,
        features: Any,
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> Metrics:
        logits, labels, losses, weights = self._weighted(labels, logits, features)
        metric = _Lookup(eval_metrics, self._summary_key)
        metric[MetricKeys.LOSS_MEAN].update_state(losses, sample_weight=weights)
        if regularization_losses is not None:
            metric[MetricKeys.LOSS_REGULARIZATION].update_state(tf.add_n(regularization_losses))
        self._update_metrics(metric, labels, self._problem.predictions(logits), weights)
        return eval_metrics

    @abc.abstractmethod
    def _update_metrics(
        self,
        metric: Mapping[str, Any],
        labels: tf.Tensor,
        predictions: Mapping[str, tf.Tensor],
        weights: float | tf.Tensor,
    ) -> None:
        """Updates those that `_metrics` made, but for the mean loss."""

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[Any] | None = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[tf.Tensor] | None = None,
    ) -> TPUEstimatorSpec:
        with tf.name_scope(self._name or "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._problem.export_outputs(predictions)
                return TPUEstimatorSpec(mode, predictions, export_outputs=outputs)
            loss = self.loss(labels, logits, features, mode, regularization_losses)
            if mode == ModeKeys.EVAL:
                given = {
                    "features": features,
                    "logits": logits,
                    "labels": labels,
                    "regularization_losses": regularization_losses,
                }
                eval_metrics = _eval_metrics(self, given)
                return TPUEstimatorSpec(mode, predictions, loss, eval_metrics=eval_metrics)
        train_op = create_train_op(
            loss, optimizer, trainable_variables, train_op_fn, update_ops, self._loss_reduction
        )
        create_summaries(loss, regularization_losses, self._summary_key)
        return TPUEstimatorSpec(mode, predictions, loss, train_op)


class _Lookup(Mapping[str, Any]):
    """Metrics by their keys without the head's name."""

    def __init__(self, metrics: Metrics, full_key: Callable[[str], str]):
        self._metrics, self._full_key = metrics, full_key

    def __getitem__(self, key: str) -> Any:
        return self._metrics[self._full_key(key)]

    def __iter__(self) -> Any:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


def _eval_metrics(head: StandardHead, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`eval_metrics` of a spec: a function of tensors alone, which gets all that is given.

    Features go by their names, so that a host that gets no others than these tensors has them.
    """
    flat = tf.nest.flatten(dict(given), expand_composites=True)
    sent = {f"tensor_{i}": value for i, value in enumerate(flat) if tf.is_tensor(value)}

    def metric_fn(**tensors: tf.Tensor) -> Metrics:
        values = [tensors.get(f"tensor_{i}", value) for i, value in enumerate(flat)]
        filled = tf.nest.pack_sequence_as(dict(given), values, expand_composites=True)
        metrics = head.metrics(filled["regularization_losses"])
        return head.update_metrics(metrics, **filled)

    return metric_fn, sent


def create_train_op(
    loss: tf.Tensor,
    optimizer: Any,
    trainable_variables: Sequence[Any] | None,
    train_op_fn: Callable[[tf.Tensor], Any] | None,
    update_ops: Sequence[Any] | None,
    loss_reduction: str,
) -> Any:
    """The training step of a head; see `Head.create_estimator_spec`."""
    _check_sequence("update_ops", update_ops)
    with tf.name_scope(""), tf.name_scope("training"):
        if optimizer is not None:
            if train_op_fn is not None:
                raise ValueError("train_op_fn and optimizer cannot both be set.")
            train_op = _minimize(loss, optimizer, trainable_variables, loss_reduction)
        elif train_op_fn is not None:
            train_op = train_op_fn(loss)
        else:
            raise ValueError("train_op_fn and optimizer cannot both be None.")
        return train_op if update_ops is None else tf.group(train_op, *update_ops)


def _minimize(loss: tf.Tensor, optimizer: Any, variables: Any, loss_reduction: str) -> Any:
    import tf_keras

    kinds = tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer
    if not isinstance(optimizer, kinds):
        raise ValueError(
            "The given optimizer is not a tf.keras.optimizers.Optimizer instance. Received "
            f"optimizer of type {type(optimizer)}"
        )
    if variables is None:
        raise ValueError(f"trainable_variables cannot be None. Given {variables}")
    _check_sequence("trainable_variables", variables)
    loss = share_of_loss(loss, loss_reduction)
    if hasattr(optimizer, "get_updates"):
        return optimizer.get_updates(loss, variables)[0]
    gradients = tf.gradients(loss, variables)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))


def _check_sequence(name: str, values: Any) -> None:
    if values is not None and not isinstance(values, list | tuple):
        raise ValueError(f"{name} should be a list or a tuple. Given type: {type(values)}.")


def create_summaries(
    loss: tf.Tensor,
    regularization_losses: Sequence[tf.Tensor] | None,
    full_key: Callable[[str], str] = str,
) -> None:
    """Summaries of a training step: the loss, and of it what regularization adds."""
    with tf.name_scope(""):
        tf.compat.v1.summary.scalar(full_key(MetricKeys.LOSS), loss)
        if regularization_losses is not None:
            key = full_key(MetricKeys.LOSS_REGULARIZATION)
            tf.compat.v1.summary.scalar(key, tf.add_n(regularization_losses))
