"""The model_fns of wide and deep models: a linear and a deep model whose logits are added."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras

from tpu_estimator_compat.canned import dense_model, summaries
from tpu_estimator_compat.canned.dnn import dnn_logit_fn_builder
from tpu_estimator_compat.canned.inputs import check_features
from tpu_estimator_compat.canned.linear import linear_logit_fn_builder, linear_model_v2
from tpu_estimator_compat.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from tpu_estimator_compat.canned.replicas import share_of_loss
from tpu_estimator_compat.spec import ModeKeys

_DNN_LEARNING_RATE = 0.001
_LINEAR_LEARNING_RATE = 0.005
_MIN_SLICE = 64 << 20  # bytes
"""Of a part of a variable that is split over parameter servers."""

_MEAN = tf_keras.losses.Reduction.SUM_OVER_BATCH_SIZE


class Options(NamedTuple):
    """What all of these models are told but for the head: arguments of the estimators, by name."""

    linear_feature_columns: Sequence[Any] | None
    linear_optimizer: Any
    linear_sparse_combiner: str
    dnn_feature_columns: Sequence[Any] | None
    dnn_optimizer: Any
    dnn_hidden_units: Iterable[int] | None
    dnn_activation_fn: Any
    dnn_dropout: float | None
    batch_norm: bool

    @property
    def linear_learning_rate(self) -> float:
        """Of a linear optimizer that is named."""
        return min(_LINEAR_LEARNING_RATE, 1.0 / math.sqrt(len(self.linear_feature_columns or ())))

    def columns(self) -> list[Any]:
        """All columns.

        Raises:
          ValueError: there are none.
        """
        columns = [*(self.linear_feature_columns or ()), *(self.dnn_feature_columns or ())]
        if not columns:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )
        return columns


class _Part(NamedTuple):
    """The linear or the deep half: its logits, and the step that trains it on a loss."""

    logits: tf.Tensor
    train_ops: Callable[[tf.Tensor], Iterable[Any]]


def _model_fn(
    features: Any,
    labels: Any,
    mode: str,
    config: Any,
    head: Any,
    options: Options,
    input_layer_partitioner: Any,
) -> Any:
    check_features(features)
    servers = config.num_ps_replicas if config else 0
    partitioner = input_layer_partitioner or tf.compat.v1.min_max_variable_partitioner(
        max_partitions=servers, min_slice_size=_MIN_SLICE
    )
    parts = []
    if options.dnn_feature_columns:
        parts.append(_deep_part(features, mode, head, options, partitioner, servers))
    if options.linear_feature_columns:
        parts.append(_linear_part(features, head, options, partitioner))

    def train_op_fn(loss: tf.Tensor) -> Any:
        train_op = tf.group(*(op for part in parts for op in part.train_ops(loss)))
        with tf.control_dependencies([train_op]):
            return tf.compat.v1.assign_add(tf.compat.v1.train.get_global_step(), 1).op

    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=_sum(parts)
    )


def _deep_part(
    features: Any, mode: str, head: Any, options: Options, partitioner: Any, servers: int
) -> _Part:
    optimizer = get_optimizer_instance(options.dnn_optimizer, learning_rate=_DNN_LEARNING_RATE)
    _check_is_not_synchronous(optimizer)
    hidden_units = _checked_hidden_units(options)
    with tf.compat.v1.variable_scope(
        "dnn",
        values=tuple(features.values()),
        partitioner=tf.compat.v1.min_max_variable_partitioner(max_partitions=servers),
    ) as scope:
        logit_fn = dnn_logit_fn_builder(
            head.logits_dimension,
            hidden_units,
            options.dnn_feature_columns or (),
            options.dnn_activation_fn,
            options.dnn_dropout,
            partitioner,
            options.batch_norm,
        )
        logits = logit_fn(features=features, mode=mode)
    return _Part(logits, _minimize(optimizer, scope.name))


def _linear_part(features: Any, head: Any, options: Options, partitioner: Any) -> _Part:
    optimizer = get_optimizer_instance(
        options.linear_optimizer, learning_rate=options.linear_learning_rate
    )
    _check_is_not_synchronous(optimizer)
    with tf.compat.v1.variable_scope(
        "linear", values=tuple(features.values()), partitioner=partitioner
    ) as scope:
        logit_fn = linear_logit_fn_builder(
            head.logits_dimension,
            options.linear_feature_columns or (),
            options.linear_sparse_combiner,
        )
        logits = logit_fn(features=features)
        summaries.of_layer(logits, scope.name)
    return _Part(logits, _minimize(optimizer, scope.name))


def _minimize(optimizer: Any, scope: str) -> Callable[[tf.Tensor], Iterable[Any]]:
    def train_ops(loss: tf.Tensor) -> Iterable[Any]:
        trainable = tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES
        variables = tf.compat.v1.get_collection(trainable, scope=scope)
        return [optimizer.minimize(loss, var_list=variables)]

    return train_ops


def _model_fn_v2(
    features: Any, labels: Any, mode: str, head: Any, options: Options, loss_reduction: Any
) -> Any:
    check_features(features)
    parts = []
    if options.dnn_feature_columns:
        parts.append(_deep_part_v2(features, mode, head, options))
    if options.linear_feature_columns:
        counts = not parts  # one of the optimizers counts the steps
        parts.append(_linear_part_v2(features, mode, head, options, counts))

    def train_op_fn(loss: tf.Tensor) -> Any:
        loss = share_of_loss(loss, loss_reduction)
        return tf.group(*(op for part in parts for op in part.train_ops(loss)))

    return head.create_estimator_spec(
        features=features, mode=mode, labels=labels, train_op_fn=train_op_fn, logits=_sum(parts)
    )


def _deep_part_v2(features: Any, mode: str, head: Any, options: Options) -> _Part:
    optimizer = options.dnn_optimizer
    if mode == ModeKeys.TRAIN:
        optimizer = get_optimizer_instance_v2(optimizer, learning_rate=_DNN_LEARNING_RATE)
        optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
    layers = dense_model.Layers(
        head.logits_dimension,
        _checked_hidden_units(options),
        options.dnn_activation_fn,
        options.dnn_dropout,
        options.batch_norm,
    )
    model = dense_model.of_v2(features, mode, options.dnn_feature_columns or (), layers)

    def train_ops(loss: tf.Tensor) -> Iterable[Any]:
        return [*optimizer.get_updates(loss, model.trainable_variables), *model.updates]

    return _Part(model.logits, train_ops)


def _linear_part_v2(features: Any, mode: str, head: Any, options: Options, counts: bool) -> _Part:
    optimizer = options.linear_optimizer
    if mode == ModeKeys.TRAIN:
        optimizer = get_optimizer_instance_v2(optimizer, learning_rate=options.linear_learning_rate)
        if counts:
            optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
    logits, trainable = linear_model_v2(
        head.logits_dimension,
        options.linear_feature_columns or (),
        options.linear_sparse_combiner,
        features,
    )
    summaries.of_layer(logits, "linear")

    def train_ops(loss: tf.Tensor) -> Iterable[Any]:
        updates: Iterable[Any] = optimizer.get_updates(loss, trainable)
        return updates

    return _Part(logits, train_ops)


def _sum(parts: Sequence[_Part]) -> tf.Tensor:
    deep, *linear = (part.logits for part in parts)
    return deep + linear[0] if linear else deep


def _checked_hidden_units(options: Options) -> Iterable[int]:
    if not options.dnn_hidden_units:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    return options.dnn_hidden_units


def _check_is_not_synchronous(optimizer: Any) -> None:
    if isinstance(optimizer, tf.compat.v1.train.SyncReplicasOptimizer):
        raise ValueError(
            "SyncReplicasOptimizer does not support multi optimizers case. Therefore, it is not "
            "supported in DNNLinearCombined model. If you want to use this optimizer, please use "
            "either DNN or Linear model."
        )


def bind(head: Any, options: Options, input_layer_partitioner: Any) -> Callable[..., Any]:
    """The model_fn of TensorFlow 1's models.

    Args:
      head: makes loss, predictions and metrics of logits.
      options: of the model.
      input_layer_partitioner: of embeddings and of linear weights.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        return _model_fn(features, labels, mode, config, head, options, input_layer_partitioner)

    return model_fn


def bind_v2(head: Any, options: Options, loss_reduction: Any = _MEAN) -> Callable[..., Any]:
    """The model_fn of TensorFlow 2's models.

    Args:
      head: makes loss, predictions and metrics of logits.
      options: of the model.
      loss_reduction: what the head was told.
    """

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        return _model_fn_v2(features, labels, mode, head, options, loss_reduction)

    return model_fn
