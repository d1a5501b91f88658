"""Deep models: `DNNClassifier`, `DNNRegressor` and `DNNEstimator`, of both TensorFlows.

Those whose names end in `V2` are TensorFlow 2's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from tpu_estimator_compat.canned import dense_model, heads
from tpu_estimator_compat.canned.heads import v1 as heads_v1
from tpu_estimator_compat.canned.heads.selection import binary_or_multi_class_head
from tpu_estimator_compat.canned.inputs import check_features
from tpu_estimator_compat.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from tpu_estimator_compat.estimator import Estimator
from tpu_estimator_compat.spec import ModeKeys

_LEARNING_RATE = 0.05
_MIN_SLICE = 64 << 20  # bytes
"""Of a part of an embedding that is split over parameter servers."""

_SUM = tf.compat.v1.losses.Reduction.SUM
_MEAN = tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Sequence[Any],
    activation_fn: Any,
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[..., tf.Tensor]:
    """A function from features and mode to the logits of TensorFlow 1's deep model.

    Args:
      units: how many logits.
      hidden_units: of each hidden layer.
      feature_columns: dense ones.
      activation_fn: of the hidden layers.
      dropout: which share of the activations of a hidden layer is dropped; None for none.
      input_layer_partitioner: of embeddings.
      batch_norm: whether to normalise the hidden layers.

    Raises:
      ValueError: `units` is no int.
    """
    layers = dense_model.Layers(_checked(units), hidden_units, activation_fn, dropout, batch_norm)

    def dnn_logit_fn(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        return dense_model.of_v1(features, mode, feature_columns, layers, input_layer_partitioner)

    return dnn_logit_fn


def dnn_logit_fn_builder_v2(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Sequence[Any],
    activation_fn: Any,
    dropout: float | None,
    batch_norm: bool,
) -> Callable[..., tf.Tensor]:
    """`dnn_logit_fn_builder` with layers of Keras 2."""
    layers = dense_model.Layers(_checked(units), hidden_units, activation_fn, dropout, batch_norm)

    def dnn_logit_fn(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        return dense_model.of_v2(features, mode, feature_columns, layers).logits

    return dnn_logit_fn


def _checked(units: Any) -> int:
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    return units


def _dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Iterable[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Any = tf.nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Any = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """model_fn of TensorFlow 1's deep models, but for the arguments that they bind."""
    optimizer = get_optimizer_instance(optimizer, learning_rate=_LEARNING_RATE)
    check_features(features)
    servers = config.num_ps_replicas if config else 0
    partitioner = tf.compat.v1.min_max_variable_partitioner
    input_partitioner = partitioner(max_partitions=servers, min_slice_size=_MIN_SLICE)
    with tf.compat.v1.variable_scope(
        "dnn",
        values=tuple(features.values()),
        partitioner=None if use_tpu else partitioner(max_partitions=servers),
    ):
        logit_fn = dnn_logit_fn_builder(
            head.logits_dimension,
            hidden_units,
            feature_columns,
            activation_fn,
            dropout,
            input_layer_partitioner or (None if use_tpu else input_partitioner),
            batch_norm,
        )
        logits = logit_fn(features=features, mode=mode)
        create_spec = head._create_tpu_estimator_spec if use_tpu else head.create_estimator_spec
        return create_spec(
            features=features, mode=mode, labels=labels, optimizer=optimizer, logits=logits
        )


def dnn_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Iterable[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Any = tf.nn.relu,
    dropout: float | None = None,
    config: Any = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """model_fn of TensorFlow 2's deep models, but for the arguments that they bind."""
    del config
    check_features(features)
    layers = dense_model.Layers(
        _checked(head.logits_dimension), hidden_units, activation_fn, dropout, batch_norm
    )
    model = dense_model.of_v2(features, mode, feature_columns, layers)
    if mode == ModeKeys.TRAIN:
        optimizer = get_optimizer_instance_v2(optimizer)
        optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
    create_spec = head._create_tpu_estimator_spec if use_tpu else head.create_estimator_spec
    return create_spec(
        features=features,
        mode=mode,
        labels=labels,
        optimizer=optimizer,
        logits=model.logits,
        trainable_variables=model.trainable_variables,
        update_ops=model.updates,
    )


class _Options(NamedTuple):
    """What all deep models are told but for the head."""

    hidden_units: Iterable[int]
    feature_columns: Iterable[Any] | None
    optimizer: Any
    activation_fn: Any
    dropout: float | None
    batch_norm: bool

    def by_name(self) -> dict[str, Any]:
        columns = tuple(self.feature_columns or [])
        return {**self._asdict(), "feature_columns": columns}


def _bind(head: Any, options: _Options, input_layer_partitioner: Any) -> Callable[..., Any]:
    bound = options.by_name() | {"input_layer_partitioner": input_layer_partitioner}

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _dnn_model_fn(features, labels, mode, head, config=config, **bound)

    return model_fn


def _bind_v2(head: Any, options: _Options) -> Callable[..., Any]:
    bound = options.by_name()

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return dnn_model_fn_v2(features, labels, mode, head, config=config, **bound)

    return model_fn


class DNNClassifier(Estimator):
    """TensorFlow 1's deep classifier.

    Args:
      hidden_units: of each hidden layer.
      feature_columns: dense ones.
      model_dir: of checkpoints and events.
      n_classes: how many labels there are.
      weight_column: name, or numeric column, of the examples' weights.
      label_vocabulary: the labels, if they are strings.
      optimizer: a name, an optimizer of `tf.train`, or a function that makes one.
      activation_fn: of the hidden layers.
      dropout: which share of the activations of a hidden layer is dropped; None for none.
      input_layer_partitioner: of embeddings.
      config: a `RunConfig`.
      warm_start_from: a checkpoint or SavedModel path, or `WarmStartSettings`.
      loss_reduction: how the losses of a batch are joined.
      batch_norm: whether to normalise the hidden layers.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
    ):
        head = heads_v1._binary_logistic_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressor(Estimator):
    """TensorFlow 1's deep regression.

    Args:
      label_dimension: how many numbers a label has. The others are those of `DNNClassifier`.
    """

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
    ):
        head = heads_v1._regression_head(
            weight_column=weight_column,
            label_dimension=label_dimension,
            loss_reduction=loss_reduction,
        )
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNEstimator(Estimator):
    """TensorFlow 1's deep model below a head.

    Args:
      head: makes loss, predictions and metrics of logits. The others are those of `DNNClassifier`.
    """

    def __init__(
        self,
        head: Any,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ):
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind(head, options, input_layer_partitioner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifierV2(Estimator):
    """TensorFlow 2's `DNNClassifier`: layers and optimizer are those of Keras 2."""

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        batch_norm: bool = False,
    ):
        head = binary_or_multi_class_head(
            n_classes, weight_column, label_vocabulary, loss_reduction
        )
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind_v2(head, options)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNRegressorV2(Estimator):
    """TensorFlow 2's `DNNRegressor`: layers and optimizer are those of Keras 2."""

    def __init__(
        self,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _MEAN,
        batch_norm: bool = False,
    ):
        head = heads.RegressionHead(
            label_dimension=label_dimension,
            weight_column=weight_column,
            loss_reduction=loss_reduction,
        )
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind_v2(head, options)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNEstimatorV2(Estimator):
    """TensorFlow 2's `DNNEstimator`: layers and optimizer are those of Keras 2."""

    def __init__(
        self,
        head: Any,
        hidden_units: Iterable[int],
        feature_columns: Iterable[Any] | None,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ):
        options = _Options(
            hidden_units, feature_columns, optimizer, activation_fn, dropout, batch_norm
        )
        model_fn = _bind_v2(head, options)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)
