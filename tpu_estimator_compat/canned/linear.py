"""Linear models: `LinearClassifier`, `LinearRegressor` and `LinearEstimator`, of both TensorFlows.

Those whose names end in `V2` are TensorFlow 2's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from tpu_estimator_compat.canned import heads, linear_model, summaries
from tpu_estimator_compat.canned.heads import v1 as heads_v1
from tpu_estimator_compat.canned.heads.selection import binary_or_multi_class_head
from tpu_estimator_compat.canned.inputs import check_features
from tpu_estimator_compat.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys

_LEARNING_RATE = 0.2
_MIN_SLICE = 64 << 20  # bytes
"""Of a part of a variable that is split over parameter servers."""

_SUM = tf.compat.v1.losses.Reduction.SUM
_MEAN = tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE


def linear_logit_fn_builder(
    units: int, feature_columns: Sequence[Any], sparse_combiner: str = "sum"
) -> Callable[..., tf.Tensor]:
    """A function from features to the logits of TensorFlow 1's linear model.

    Args:
      units: how many logits.
      feature_columns: categorical or dense ones.
      sparse_combiner: `sum`, `mean` or `sqrtn`: how the values of an example are joined.
    """

    def linear_logit_fn(features: Mapping[str, Any]) -> tf.Tensor:
        is_v2 = linear_model.is_v2(feature_columns)
        build = linear_model.of_columns if is_v2 else linear_model.of_v1_columns
        model = build(features, feature_columns, units, sparse_combiner, "linear_model")
        return _summarised(model, units)

    return linear_logit_fn


def linear_logit_fn_builder_v2(
    units: int, feature_columns: Sequence[Any], sparse_combiner: str = "sum"
) -> Callable[..., tf.Tensor]:
    """`linear_logit_fn_builder` for columns of TensorFlow 2 alone."""

    def linear_logit_fn(features: Mapping[str, Any]) -> tf.Tensor:
        linear_model.check_columns_are_v2(feature_columns)
        return linear_logit_fn_builder(units, feature_columns, sparse_combiner)(features)

    return linear_logit_fn


def linear_model_v2(
    units: int, feature_columns: Sequence[Any], sparse_combiner: str, features: Mapping[str, Any]
) -> tuple[tf.Tensor, list[Any]]:
    """Logits of TensorFlow 2's linear model, and the variables to train."""
    linear_model.check_columns_are_v2(feature_columns)
    model = linear_model.of_columns(
        features, feature_columns, units, sparse_combiner, "linear/linear_model"
    )
    return _summarised(model, units), [*model.weights, *model.bias]


def _summarised(model: linear_model.LinearModel, units: int) -> tf.Tensor:
    bias = tf.stack(model.bias) if units > 1 else model.bias[0][0]
    summaries.of_linear_model(bias, model.weights)
    return model.logits


def _linear_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any,
    partitioner: Any,
    config: Any,
    sparse_combiner: str = "sum",
) -> Any:
    """model_fn of TensorFlow 1's linear models, but for the arguments that they bind."""
    check_features(features)
    partitioner = partitioner or tf.compat.v1.min_max_variable_partitioner(
        max_partitions=config.num_ps_replicas if config else 0, min_slice_size=_MIN_SLICE
    )
    with tf.compat.v1.variable_scope(
        "linear", values=tuple(features.values()), partitioner=partitioner
    ):
        logit_fn = linear_logit_fn_builder(head.logits_dimension, feature_columns, sparse_combiner)
        logits = logit_fn(features=features)
        optimizer = get_optimizer_instance(
            optimizer or tf.compat.v1.train.FtrlOptimizer(_default_learning_rate(feature_columns)),
            learning_rate=_LEARNING_RATE,
        )
        return head.create_estimator_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer, logits=logits
        )


def _linear_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any,
    config: Any,
    sparse_combiner: str = "sum",
) -> Any:
    """model_fn of TensorFlow 2's linear models, but for the arguments that they bind."""
    del config
    check_features(features)
    logits, trainable = linear_model_v2(
        head.logits_dimension, feature_columns, sparse_combiner, features
    )
    if mode == ModeKeys.TRAIN:
        optimizer = get_optimizer_instance_v2(
            optimizer or tf_keras.optimizers.legacy.Ftrl(_default_learning_rate(feature_columns)),
            learning_rate=_LEARNING_RATE,
        )
        optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
    return head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        optimizer=optimizer,
        trainable_variables=trainable,
        logits=logits,
    )


def _default_learning_rate(feature_columns: Sequence[Any]) -> float:
    return min(_LEARNING_RATE, 1.0 / math.sqrt(len(feature_columns)))


def _bind(
    head: Any,
    feature_columns: Iterable[Any] | None,
    optimizer: Any,
    partitioner: Any,
    sparse_combiner: str,
) -> Callable[..., Any]:
    columns = tuple(feature_columns or [])

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _linear_model_fn(
            features,
            labels,
            mode,
            head,
            columns,
            optimizer,
            partitioner,
            config,
            sparse_combiner,
        )

    return model_fn


def _bind_v2(
    head: Any, feature_columns: Iterable[Any] | None, optimizer: Any, sparse_combiner: str
) -> Callable[..., Any]:
    columns = tuple(feature_columns or [])

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _linear_model_fn_v2(
            features, labels, mode, head, columns, optimizer, config, sparse_combiner
        )

    return model_fn


class LinearClassifier(Estimator):
    """TensorFlow 1's linear classifier.

    Args:
      feature_columns: categorical or dense ones.
      model_dir: of checkpoints and events.
      n_classes: how many labels there are.
      weight_column: name, or numeric column, of the examples' weights.
      label_vocabulary: the labels, if they are strings.
      optimizer: a name, an optimizer of `tf.train`, or a function that makes one.
      config: a `RunConfig`.
      partitioner: of variables.
      warm_start_from: a checkpoint or SavedModel path, or `WarmStartSettings`.
      loss_reduction: how the losses of a batch are joined.
      sparse_combiner: `sum`, `mean` or `sqrtn`: how the values of an example are joined.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        sparse_combiner: str = "sum",
    ):
        head = heads_v1._binary_logistic_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        model_fn = _bind(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressor(Estimator):
    """TensorFlow 1's linear regression.

    Args:
      label_dimension: how many numbers a label has. The others are those of `LinearClassifier`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        sparse_combiner: str = "sum",
    ):
        head = heads_v1._regression_head(
            weight_column=weight_column,
            label_dimension=label_dimension,
            loss_reduction=loss_reduction,
        )
        model_fn = _bind(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearEstimator(Estimator):
    """TensorFlow 1's linear model below a head.

    Args:
      head: makes loss, predictions and metrics of logits. The others are those of
        `LinearClassifier`.
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        model_fn = _bind(head, feature_columns, optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifierV2(Estimator):
    """TensorFlow 2's `LinearClassifier`: the optimizer is one of Keras 2."""

    def __init__(
        self,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        sparse_combiner: str = "sum",
    ):
        head = binary_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        model_fn = _bind_v2(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearRegressorV2(Estimator):
    """TensorFlow 2's `LinearRegressor`: the optimizer is one of Keras 2."""

    def __init__(
        self,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        sparse_combiner: str = "sum",
    ):
        head = heads.RegressionHead(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        model_fn = _bind_v2(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearEstimatorV2(Estimator):
    """TensorFlow 2's `LinearEstimator`: the optimizer is one of Keras 2."""

    def __init__(
        self,
        head: Any,
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ):
        model_fn = _bind_v2(head, feature_columns, optimizer, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
