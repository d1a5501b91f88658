"""The deep model of feature columns: an input layer, hidden layers, and one of logits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tf_keras
from tensorflow.python.feature_column import feature_column as columns_v1
from tf_keras.api._v1 import keras as keras_v1

from tpu_estimator_compat import layers as tf_layers
from tpu_estimator_compat.canned import linear_model, summaries
from tpu_estimator_compat.spec import ModeKeys

_layers_v1: Any = tf_layers
_BATCH_NORM_MOMENTUM = 0.999


class Layers(NamedTuple):
    """What the layers are.

    Attributes:
      units: how many logits.
      hidden_units: of each hidden layer.
      activation_fn: of the hidden layers.
      dropout: which share of the activations of a hidden layer is dropped; None for none.
      batch_norm: whether to normalise the hidden layers.
    """

    units: int
    hidden_units: Iterable[int]
    activation_fn: Any
    dropout: float | None
    batch_norm: bool


class DenseModel(NamedTuple):
    """A deep model of features.

    Attributes:
      logits: one column per unit.
      trainable_variables: of all layers.
      updates: of moving averages.
    """

    logits: tf.Tensor
    trainable_variables: list[Any]
    updates: list[Any]


def of_v1(
    features: Mapping[str, Any],
    mode: str,
    columns: Sequence[Any],
    layers: Layers,
    input_layer_partitioner: Any,
) -> tf.Tensor:
    """Logits of layers of `tf.layers`, whose variables are in the current scope.

    Args:
      features: tensors by name.
      mode: a `ModeKeys` value.
      columns: dense ones.
      layers: what the layers are.
      input_layer_partitioner: of embeddings.
    """
    with _name_scope():
        return _layers_of_v1(features, mode, columns, layers, input_layer_partitioner)


def _name_scope() -> contextlib.AbstractContextManager[Any]:
    """`dnn`, where there is no other: summaries are named by it."""
    if tf.compat.v1.get_default_graph().get_name_scope():
        return contextlib.nullcontext()
    scope: contextlib.AbstractContextManager[Any] = tf.compat.v1.name_scope("dnn")
    return scope


def _layers_of_v1(
    features: Mapping[str, Any],
    mode: str,
    columns: Sequence[Any],
    layers: Layers,
    input_layer_partitioner: Any,
) -> tf.Tensor:
    training = mode == ModeKeys.TRAIN
    scope_of = tf.compat.v1.variable_scope
    with scope_of("input_from_feature_columns", partitioner=input_layer_partitioner):
        net = _input_layer_v1(features, columns, training)
    for i, units in enumerate(layers.hidden_units):
        with scope_of(f"hiddenlayer_{i}") as scope:
            net = _dense_v1(net, units, layers.activation_fn, scope)
            if layers.dropout is not None and training:
                net = _layers_v1.dropout(net, rate=layers.dropout, training=True)
            if layers.batch_norm:
                name = f"batchnorm_{i}"
                net = _layers_v1.batch_normalization(
                    net, momentum=_BATCH_NORM_MOMENTUM, training=training, name=name
                )
        summaries.of_layer(net, scope.name)
    with scope_of("logits") as scope:
        logits = _dense_v1(net, layers.units, None, scope)
    summaries.of_layer(logits, scope.name)
    return logits


def _input_layer_v1(features: Any, columns: Sequence[Any], training: bool) -> tf.Tensor:
    if linear_model.is_v2(columns):
        dense_features = keras_v1.layers.DenseFeatures(columns, name="input_layer")
        return dense_features(features, training=training)
    name = "input_layer"
    return columns_v1.InputLayer(columns, name=name, create_scope_now=False)(features)


def _dense_v1(net: tf.Tensor, units: int, activation: Any, scope: Any) -> tf.Tensor:
    return _layers_v1.dense(
        net,
        units,
        activation,
        kernel_initializer=tf.compat.v1.glorot_uniform_initializer(),
        name=scope,
    )


def of_v2(
    features: Mapping[str, Any], mode: str, columns: Sequence[Any], layers: Layers
) -> DenseModel:
    """Logits of layers of Keras 2, below `dnn`; its arguments are those of `of_v1`."""
    training = mode == ModeKeys.TRAIN
    linear_model.check_columns_are_v2(columns)
    used = []

    def through(layer: Any, value: Any, **arguments: Any) -> tf.Tensor:
        used.append(layer)
        return layer(value, **arguments)

    with tf.compat.v1.name_scope("dnn"):
        name = "input_from_feature_columns/input_layer"
        dense_features = tf_keras.layers.DenseFeatures(columns, name=name)
        net = through(dense_features, features, training=training)
        for i, units in enumerate(layers.hidden_units):
            name = f"hiddenlayer_{i}"
            net = through(_dense_v2(units, layers.activation_fn, name), net)
            if layers.dropout is not None and training:
                net = through(tf_keras.layers.Dropout(layers.dropout), net, training=True)
            if layers.batch_norm:
                net = through(_batch_norm_v2(f"{name}/batchnorm_{i}"), net, training=training)
            summaries.of_layer(net, name)
        logits = through(_dense_v2(layers.units, None, "logits"), net)
        summaries.of_layer(logits, "logits")
    return DenseModel(
        logits,
        [variable for layer in used for variable in layer.trainable_variables],
        [update for layer in used for update in layer.updates],
    )


def _dense_v2(units: int, activation: Any, name: str) -> Any:
    initializer = tf.compat.v1.glorot_uniform_initializer()
    return tf_keras.layers.Dense(units, activation, kernel_initializer=initializer, name=name)


def _batch_norm_v2(name: str) -> Any:
    return tf_keras.layers.BatchNormalization(momentum=_BATCH_NORM_MOMENTUM, name=name)
