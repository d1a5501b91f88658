"""Baselines, which ignore features and learn a bias alone, of both TensorFlows.

Those whose names end in `V2` are TensorFlow 2's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from tensorflow.python.feature_column import feature_column as columns_v1
from tensorflow.python.feature_column import feature_column_v2 as columns_v2

from tpu_estimator_compat.canned import heads
from tpu_estimator_compat.canned.heads import v1 as heads_v1
from tpu_estimator_compat.canned.heads.selection import binary_or_multi_class_head
from tpu_estimator_compat.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from tpu_estimator_compat.canned.replicas import share_of_loss
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys

_LEARNING_RATE = 0.3
_NUMERIC_COLUMNS: Any = (columns_v1._NumericColumn, columns_v2.NumericColumn)
_SUM = tf.compat.v1.losses.Reduction.SUM
_MEAN = tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE


def _baseline_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    optimizer: Any,
    weight_column: Any = None,
    config: Any = None,
) -> Any:
    """model_fn of TensorFlow 1's baselines, but for the arguments that they bind."""
    del config
    checks, size = _batch_size(features, _key(weight_column))
    units = head.logits_dimension
    with tf.control_dependencies(checks), tf.compat.v1.variable_scope("baseline"):
        bias = tf.compat.v1.get_variable(
            "bias", [units], initializer=tf.compat.v1.zeros_initializer()
        )
        logits = bias * tf.ones([size, units])

    def train_op_fn(loss: tf.Tensor) -> Any:
        made = get_optimizer_instance(optimizer, learning_rate=_LEARNING_RATE)
        return made.minimize(loss, global_step=tf.compat.v1.train.get_global_step())

    return head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
    )


def _baseline_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    optimizer: Any,
    weight_column: Any = None,
    config: Any = None,
    loss_reduction: Any = _MEAN,
) -> Any:
    """model_fn of TensorFlow 2's baselines, but for the arguments that they bind."""
    del config
    checks, size = _batch_size(features, _key(weight_column))
    units = head.logits_dimension
    with tf.control_dependencies(checks), tf.compat.v1.name_scope("baseline"):
        bias = tf.Variable(tf.zeros([units]), name="bias")
        logits = bias * tf.ones([size, units])
    if mode == ModeKeys.TRAIN:
        optimizer = get_optimizer_instance_v2(optimizer, learning_rate=_LEARNING_RATE)
        optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()

    def train_op_fn(loss: tf.Tensor) -> Any:
        return optimizer.get_updates(share_of_loss(loss, loss_reduction), [bias])[0]

    return head.create_estimator_spec(
        features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
    )


def _key(weight_column: Any) -> str | None:
    """The feature that is no feature, but the examples' weights."""
    if weight_column is None or isinstance(weight_column, str):
        return weight_column
    if not isinstance(weight_column, _NUMERIC_COLUMNS):
        raise TypeError(
            "Weight column must be either a string or NumericColumn. "
            f"Given type: {type(weight_column)}."
        )
    return str(weight_column.key)


def _batch_size(features: Mapping[str, Any], weight_key: str | None) -> tuple[list[Any], Any]:
    """Checks that all features have one size, and the size."""
    sizes = [tf.shape(feature)[0] for key, feature in features.items() if key != weight_key]
    checks = [tf.compat.v1.debugging.assert_equal(sizes[0], size) for size in sizes[1:]]
    return checks, sizes[0] if sizes else None


def _bind(head: Any, optimizer: Any, weight_column: Any = None) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _baseline_model_fn(features, labels, mode, head, optimizer, weight_column, config)

    return model_fn


def _bind_v2(
    head: Any, optimizer: Any, weight_column: Any = None, loss_reduction: Any = _MEAN
) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _baseline_model_fn_v2(
            features, labels, mode, head, optimizer, weight_column, config, loss_reduction
        )

    return model_fn


class BaselineClassifier(Estimator):
    """TensorFlow 1's baseline classifier: it learns how frequent each class is.

    Args:
      model_dir: of checkpoints and events.
      n_classes: how many labels there are.
      weight_column: name, or numeric column, of the examples' weights.
      label_vocabulary: the labels, if they are strings.
      optimizer: a name, an optimizer of `tf.train`, or a function that makes one.
      config: a `RunConfig`.
      loss_reduction: how the losses of a batch are joined.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: Any = _SUM,
    ):
        head = heads_v1._binary_logistic_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        super().__init__(_bind(head, optimizer, weight_column), model_dir, config)


class BaselineRegressor(Estimator):
    """TensorFlow 1's baseline regression: it learns the mean of the labels.

    Args:
      label_dimension: how many numbers a label has. The others are those of `BaselineClassifier`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: Any = _SUM,
    ):
        head = heads_v1._regression_head(
            weight_column=weight_column,
            label_dimension=label_dimension,
            loss_reduction=loss_reduction,
        )
        super().__init__(_bind(head, optimizer), model_dir, config)


class BaselineEstimator(Estimator):
    """TensorFlow 1's baseline below a head.

    Args:
      head: makes loss, predictions and metrics of logits. The others are those of
        `BaselineClassifier`.
    """

    def __init__(
        self, head: Any, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None
    ):
        super().__init__(_bind(head, optimizer), model_dir, config)


class BaselineClassifierV2(Estimator):
    """TensorFlow 2's `BaselineClassifier`: the optimizer is one of Keras 2."""

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: Any = _MEAN,
    ):
        head = binary_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        model_fn = _bind_v2(head, optimizer, weight_column, loss_reduction)
        super().__init__(model_fn, model_dir, config)


class BaselineRegressorV2(Estimator):
    """TensorFlow 2's `BaselineRegressor`: the optimizer is one of Keras 2."""

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: Any = _MEAN,
    ):
        head = heads.RegressionHead(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        super().__init__(_bind_v2(head, optimizer), model_dir, config)


class BaselineEstimatorV2(Estimator):
    """TensorFlow 2's `BaselineEstimator`: the optimizer is one of Keras 2."""

    def __init__(
        self, head: Any, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None
    ):
        super().__init__(_bind_v2(head, optimizer), model_dir, config)
