"""What a head learns: how labels, losses, predictions and exported outputs follow from logits.

The heads of TensorFlow 1 and of TensorFlow 2 have these in common. They differ in metrics, in how
losses are reduced, and in who makes the training step.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import lookup_ops

from tpu_estimator_compat.canned.heads import tensors
from tpu_estimator_compat.canned.heads.arguments import Number
from tpu_estimator_compat.canned.keys import PredictionKeys
from tpu_estimator_compat.export.outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)

DEFAULT_KEY = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
CLASSIFY_KEY, REGRESS_KEY, PREDICT_KEY = "classification", "regression", "predict"
_NO_REDUCTION = tf.compat.v1.losses.Reduction.NONE

LossFn = Callable[..., tf.Tensor]


class Problem(abc.ABC):
    """A kind of label, and the loss that fits it.

    Args:
      dimension: logits per example.
      weight_column: see `tensors.weights`.
      loss_fn: a user's loss, instead of this kind's own.
    """

    loss_dimension: Number = 1
    """Losses per example."""

    def __init__(self, dimension: Number, weight_column: Any, loss_fn: LossFn | None):
        self.dimension = dimension
        self._weight_column, self._loss_fn = weight_column, loss_fn

    @abc.abstractmethod
    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        """Labels as the loss takes them, checked."""

    @abc.abstractmethod
    def _own_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor: ...

    @abc.abstractmethod
    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """All predictions, by key."""

    @abc.abstractmethod
    def _outputs(self, predictions: Mapping[str, tf.Tensor]) -> dict[str, ExportOutput]: ...

    def losses(self, labels: tf.Tensor, logits: tf.Tensor, features: Any) -> tf.Tensor:
        """Losses before weights: `[*D, loss_dimension]`."""
        if self._loss_fn is None:
            return self._own_losses(labels, logits)
        dimension = self.loss_dimension
        return tensors.custom_loss(self._loss_fn, labels, logits, features, dimension)

    def weights(self, features: Any, logits: tf.Tensor) -> float | tf.Tensor:
        """Weights of losses."""
        per_logit = self.loss_dimension is self.dimension
        return tensors.weights(features, self._weight_column, logits, per_logit=per_logit)

    def export_outputs(self, predictions: Mapping[str, tf.Tensor]) -> dict[str, ExportOutput]:
        """What signatures answer; the first is also the default."""
        outputs = self._outputs(predictions)
        default = next(iter(outputs.values()))
        return {DEFAULT_KEY: default, **outputs, PREDICT_KEY: PredictOutput(dict(predictions))}


class _Classes(Problem):
    """Labels that are classes, perhaps named by a vocabulary.

    Args:
      n_classes: how many there are.
      vocabulary: their names; None for labels that are ids.
    """

    def __init__(
        self,
        dimension: Number,
        weight_column: Any,
        loss_fn: LossFn | None,
        n_classes: Number,
        vocabulary: Sequence[str] | None,
    ):
        super().__init__(dimension, weight_column, loss_fn)
        self.n_classes, self.vocabulary = n_classes, vocabulary

    def ids(self, names: tf.Tensor) -> tf.Tensor:
        """Class ids of names; -1 for those that the vocabulary has not."""
        table = lookup_ops.index_table_from_tensor(
            vocabulary_list=tuple(self.vocabulary or ()), name="class_id_lookup"
        )
        return table.lookup(names)

    def _names(self, ids: tf.Tensor) -> tf.Tensor:
        if not self.vocabulary:
            return tf.strings.as_string(ids, name="str_classes")
        table = lookup_ops.index_to_string_table_from_tensor(
            vocabulary_list=self.vocabulary, name="class_string_lookup"
        )
        return table.lookup(ids)

    def _of_each_example(self, values: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.tile(tf.expand_dims(values, 0), [tf.shape(logits)[0], 1])

    def all_names(self, logits: tf.Tensor) -> tf.Tensor:
        """The names of all classes, for each example: `[batch_size, n_classes]`."""
        names = self.vocabulary or tf.strings.as_string(tf.range(self.n_classes))
        return self._of_each_example(tf.convert_to_tensor(names), logits)

    def _chosen(self, scores: tf.Tensor) -> dict[str, tf.Tensor]:
        """Predictions that say which class it is."""
        ids = tf.expand_dims(tf.argmax(scores, axis=-1, name=PredictionKeys.CLASS_IDS), -1)
        all_ids = self._of_each_example(tf.range(self.n_classes), scores)
        return {
            PredictionKeys.CLASS_IDS: ids,
            PredictionKeys.CLASSES: self._names(ids),
            PredictionKeys.ALL_CLASS_IDS: all_ids,
            PredictionKeys.ALL_CLASSES: self.all_names(scores),
        }

    def _outputs(self, predictions: Mapping[str, tf.Tensor]) -> dict[str, ExportOutput]:
        scores = predictions[PredictionKeys.PROBABILITIES]
        return {CLASSIFY_KEY: ClassificationOutput(scores, self.all_names(scores))}


class Binary(_Classes):
    """One of two classes; a logit for the second."""

    def __init__(
        self, weight_column: Any, loss_fn: LossFn | None, vocabulary: Sequence[str] | None
    ):
        super().__init__(1, weight_column, loss_fn, 2, vocabulary)

    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        labels = tensors.checked_labels(labels, logits, 1)
        if self.vocabulary is not None:
            labels = self.ids(labels)
        return tensors.checked_range(tf.cast(labels, tf.float32), 2)

    def _own_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        two = tf.concat([tf.zeros_like(logits), logits], axis=-1, name="two_class_logits")
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.LOGISTIC: tf.sigmoid(logits, name=PredictionKeys.LOGISTIC),
            PredictionKeys.PROBABILITIES: tf.nn.softmax(two, name=PredictionKeys.PROBABILITIES),
            **self._chosen(two),
        }

    def _outputs(self, predictions: Mapping[str, tf.Tensor]) -> dict[str, ExportOutput]:
        regression = RegressionOutput(predictions[PredictionKeys.LOGISTIC])
        return {**super()._outputs(predictions), REGRESS_KEY: regression}


class MultiClass(_Classes):
    """One of several classes; a logit for each."""

    def __init__(
        self,
        weight_column: Any,
        loss_fn: LossFn | None,
        n_classes: Number,
        vocabulary: Sequence[str] | None,
    ):
        super().__init__(n_classes, weight_column, loss_fn, n_classes, vocabulary)

    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        labels = tensors.checked_labels(labels, logits, 1)
        if self.vocabulary is None:
            if not labels.dtype.is_integer:
                raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        elif labels.dtype != tf.string:
            raise ValueError(
                "Labels dtype should be string if there is a vocabulary. "
                f"Instead got {labels.dtype}"
            )
        else:
            labels = self.ids(labels)
        return tensors.checked_range(labels, self.n_classes)

    def _own_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        losses = tf.compat.v1.losses.sparse_softmax_cross_entropy(
            labels=labels, logits=logits, reduction=_NO_REDUCTION
        )
        return tf.expand_dims(losses, axis=-1)

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        probabilities = tf.nn.softmax(logits, name=PredictionKeys.PROBABILITIES)
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: probabilities,
            **self._chosen(logits),
        }


class MultiLabel(_Classes):
    """Any number of classes; a logit for each. The loss is the mean over classes."""

    def __init__(
        self,
        weight_column: Any,
        loss_fn: LossFn | None,
        n_classes: int,
        vocabulary: Sequence[str] | None,
    ):
        super().__init__(n_classes, weight_column, loss_fn, n_classes, vocabulary)

    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        if isinstance(labels, tf.SparseTensor):
            labels = self._indicators(labels)
        elif labels is not None:
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            labels = tensors.checked_range(tf.convert_to_tensor(labels), 2, message)
        return tensors.checked_labels(labels, logits, self.dimension)

    def _indicators(self, labels: tf.SparseTensor) -> tf.Tensor:
        """1 for each class that is among an example's labels, else 0: `[*D, n_classes]`."""
        values = labels.values
        if values.dtype == tf.string:
            values = self.ids(values)
        elif not values.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {values.dtype}.")
        else:
            message = f"labels must be an integer SparseTensor with values in [0, {self.n_classes})"
            values = tensors.checked_range(values, self.n_classes, message)
        ids = tf.SparseTensor(labels.indices, values, labels.dense_shape)
        return tf.cast(tf.sparse.to_indicator(ids, self.n_classes), tf.int64)

    def _own_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        losses = tf.compat.v1.losses.sigmoid_cross_entropy(
            multi_class_labels=labels, logits=logits, reduction=_NO_REDUCTION
        )
        return tf.reduce_mean(losses, axis=-1, keepdims=True)

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: tf.sigmoid(logits, name=PredictionKeys.PROBABILITIES),
            PredictionKeys.CLASSES: self.all_names(logits),
        }


class Regression(Problem):
    """Numbers; a logit for each.

    Args:
      inverse_link_fn: makes a prediction of a logit; None where they are the same.
    """

    def __init__(
        self,
        weight_column: Any,
        loss_fn: LossFn | None,
        label_dimension: int,
        inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None,
    ):
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(label_dimension, weight_column, loss_fn)
        self.loss_dimension = self.dimension
        self._inverse_link_fn = inverse_link_fn

    def labels(self, labels: Any, logits: tf.Tensor) -> tf.Tensor:
        return tf.cast(tensors.checked_labels(labels, logits, self.dimension), tf.float32)

    def _own_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.compat.v1.losses.mean_squared_error(
            labels=labels, predictions=logits, reduction=_NO_REDUCTION
        )

    def predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        if self._inverse_link_fn is None:
            return {PredictionKeys.PREDICTIONS: logits}
        predicted = self._inverse_link_fn(logits)
        return {PredictionKeys.PREDICTIONS: predicted, PredictionKeys.LOGITS: logits}

    def _outputs(self, predictions: Mapping[str, tf.Tensor]) -> dict[str, ExportOutput]:
        return {REGRESS_KEY: RegressionOutput(predictions[PredictionKeys.PREDICTIONS])}
