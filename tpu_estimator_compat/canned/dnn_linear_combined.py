"""Wide and deep models: a linear and a deep model whose logits are added, of both TensorFlows.

Those whose names end in `V2` are TensorFlow 2's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from tpu_estimator_compat.canned import heads
from tpu_estimator_compat.canned.heads import v1 as heads_v1
from tpu_estimator_compat.canned.heads.selection import binary_or_multi_class_head
from tpu_estimator_compat.canned.wide_and_deep import Options, bind, bind_v2
from tpu_estimator_compat.estimator import Estimator

_SUM = tf.compat.v1.losses.Reduction.SUM
_MEAN = tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE


class DNNLinearCombinedClassifier(Estimator):
    """TensorFlow 1's wide and deep classifier.

    Args:
      model_dir: of checkpoints and events.
      linear_feature_columns: of the linear model: categorical or dense ones.
      linear_optimizer: a name, an optimizer of `tf.train`, or a function that makes one.
      dnn_feature_columns: of the deep model: dense ones.
      dnn_optimizer: as `linear_optimizer`.
      dnn_hidden_units: of each hidden layer.
      dnn_activation_fn: of the hidden layers.
      dnn_dropout: which share of the activations of a hidden layer is dropped; None for none.
      n_classes: how many labels there are.
      weight_column: name, or numeric column, of the examples' weights.
      label_vocabulary: the labels, if they are strings.
      input_layer_partitioner: of embeddings and of linear weights.
      config: a `RunConfig`.
      warm_start_from: a checkpoint or SavedModel path, or `WarmStartSettings`.
      loss_reduction: how the losses of a batch are joined.
      batch_norm: whether to normalise the hidden layers.
      linear_sparse_combiner: `sum`, `mean` or `sqrtn`: how the values of an example are joined.

    Raises:
      ValueError: there are no columns.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        head = heads_v1._binary_logistic_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        model_fn = bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressor(Estimator):
    """TensorFlow 1's wide and deep regression.

    Args:
      label_dimension: how many numbers a label has. The others are those of
        `DNNLinearCombinedClassifier`.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        head = heads_v1._regression_head(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        model_fn = bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedEstimator(Estimator):
    """TensorFlow 1's wide and deep model below a head.

    Args:
      head: makes loss, predictions and metrics of logits. The others are those of
        `DNNLinearCombinedClassifier`.
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        model_fn = bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config)


class DNNLinearCombinedClassifierV2(Estimator):
    """TensorFlow 2's `DNNLinearCombinedClassifier`: layers and optimizers are those of Keras 2."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        head = binary_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        model_fn = bind_v2(head, options, loss_reduction)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedRegressorV2(Estimator):
    """TensorFlow 2's `DNNLinearCombinedRegressor`: layers and optimizers are those of Keras 2."""

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        head = heads.RegressionHead(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        model_fn = bind_v2(head, options)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedEstimatorV2(Estimator):
    """TensorFlow 2's `DNNLinearCombinedEstimator`: layers and optimizers are those of Keras 2."""

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Sequence[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Sequence[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Iterable[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        config: Any = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ):
        options = Options(
            linear_feature_columns,
            linear_optimizer,
            linear_sparse_combiner,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        self._feature_columns = options.columns()
        model_fn = bind_v2(head, options)
        super().__init__(model_fn, model_dir, config)
