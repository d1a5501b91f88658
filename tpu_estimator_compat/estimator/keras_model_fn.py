"""The model_fn of a Keras 2 model: clones the model into a mode's graph and makes the spec."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging  # as in the original
from tf_keras.src.utils import losses_utils

from tpu_estimator_compat.estimator import export
from tpu_estimator_compat.spec import EstimatorSpec, ModeKeys
from tpu_estimator_compat.tf_internals import graph_view, object_checkpoint

_WEIGHED = {"features", "sample_weights"}
_DEFAULT_SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class _LinesKeyError(KeyError):
    """A KeyError that prints its message with line breaks, not its repr."""

    def __str__(self) -> str:
        return str(self.args[0])


def make(
    keras_model: Any,
    custom_objects: Mapping[str, Any] | None,
    *,
    object_based: bool,
    metric_names_map: Mapping[str, str] | None,
    export_outputs: Mapping[str, Any] | None,
) -> Callable[..., EstimatorSpec]:
    """The model_fn of a compiled model; replaces a new-style optimizer by its legacy equivalent."""
    _convert_optimizer(keras_model)
    optimizer_config = _config_of(keras_model.optimizer)

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        model = clone(mode, keras_model, custom_objects, features, labels, optimizer_config)
        predictions = dict(zip(model.output_names, model.outputs, strict=False))
        loss = train_op = metrics = None
        if mode != ModeKeys.PREDICT:
            if mode == ModeKeys.TRAIN:
                model._make_train_function()
                train_op = model.train_function.updates_op
            else:
                model._make_test_function()
            loss = _whole_loss(model)
            metrics = _metrics(model, metric_names_map)
        _restore_in_place(keras_model)
        return EstimatorSpec(
            mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=metrics,
            export_outputs=_signatures(model, predictions, export_outputs),
            scaffold=_object_scaffold(model) if object_based else None,
        )

    return model_fn


def clone(
    mode: str,
    keras_model: Any,
    custom_objects: Mapping[str, Any] | None,
    features: Any = None,
    labels: Any = None,
    optimizer_config: Any = None,
) -> Any:
    """Clones a model into the default graph, and compiles the clone except for PREDICT.

    `features` and `labels` are tensors for its inputs and targets; None for placeholders.
    """
    training = mode == ModeKeys.TRAIN
    tf_keras.backend.set_learning_phase(training)
    features, weights = _weights_apart(features)
    step = None
    if mode != ModeKeys.PREDICT:
        step = tf.compat.v1.train.get_or_create_global_step()
        tf_keras.__internal__.backend.track_variable(step)
    made = tf_keras.__internal__.models.clone_and_build_model(
        keras_model,
        _inputs(keras_model, features),
        _ordered(labels, _names(keras_model, "output", labels), "labels", "outputs"),
        custom_objects,
        compile_clone=mode != ModeKeys.PREDICT,
        in_place_reset=not keras_model._is_graph_network,
        optimizer_iterations=step,
        optimizer_config=optimizer_config,
    )
    if weights is not None:
        made._compile_weights_loss_and_weighted_metrics(_by_output(weights, made.output_names))
    return made


def track_global_step(model: Any) -> None:
    """Adds the global step to a model's object-based checkpoints."""
    model._track_trackable(tf.compat.v1.train.get_global_step(), "estimator_global_step")


def _convert_optimizer(model: Any) -> None:
    optimizer = model.optimizer
    if not isinstance(optimizer, tf_keras.optimizers.experimental.Optimizer):
        return
    if not tf.executing_eagerly():
        raise ValueError(
            "Please set your optimizer as an instance of `tf.keras.optimizers.legacy.Optimizer`, "
            "e.g., `tf.keras.optimizers.legacy.Adam`. Received optimizer type: "
            f"{type(optimizer)}."
        )
    logging.warning(
        "You are using `tf.keras.optimizers.experimental.Optimizer` in TF estimator, which only "
        "supports `tf.keras.optimizers.legacy.Optimizer`. Automatically converting your optimizer "
        "to `tf.keras.optimizers.legacy.Optimizer`."
    )
    model.optimizer = tf_keras.__internal__.optimizers.convert_to_legacy_optimizer(optimizer)


def _config_of(optimizer: Any) -> Any:
    """The optimizer's config, read outside the clone's graph; None for optimizers of `tf.train`.

    The config may hold values of variables, which cannot be read in that graph.
    """
    try:
        if isinstance(optimizer, (list, tuple)):
            return [one.get_config() for one in optimizer]
        return optimizer.get_config()
    except (NotImplementedError, AttributeError):  # optimizers of `tf.train` have no config
        return None


def _weights_apart(features: Any) -> tuple[Any, Any]:
    if isinstance(features, dict) and set(features) == _WEIGHED:
        return features["features"], features["sample_weights"]
    return features, None


def _inputs(model: Any, features: Any) -> Any:
    """Features in the form that the model takes: a list in the order of its inputs, or a dict."""
    if isinstance(features, dict) and isinstance(model.inputs, dict):
        return {name: _tensor(features[name]) for name in model.inputs}
    if isinstance(features, dict) and model.inputs is None:
        return {name: _tensor(value) for name, value in features.items()}
    names = _names(model, "input", features)
    return _ordered(features, names, "features", "inputs")


def _names(model: Any, kind: str, given: Any) -> list[str]:
    """The names of a model's inputs or outputs; numbered names for a subclassed model."""
    if model._is_graph_network:
        names: list[str] = getattr(model, f"{kind}_names")
        return names
    return [f"{kind}_{i}" for i in range(1, len(given) + 1)] if isinstance(given, dict) else []


def _ordered(given: Any, names: Collection[str], what: str, order: str) -> list[Any] | None:
    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        return [_tensor(value) for value in given]
    if not isinstance(given, dict):
        return [_tensor(given)]
    _check_keys(set(names), given, what, order)
    return [_tensor(given[name]) for name in names]


def _check_keys(names: set[str], given: Collection[str], what: str, order: str) -> None:
    if missed := names - set(given):
        raise _LinesKeyError(
            f"The dictionary passed into {what} does not cover requested {order} keys defined in "
            f"the keras model.\n\tExpected keys: {names}\n\t{what} keys: {set(given)}\n\tMissed "
            f"keys: {missed}"
        )


def _tensor(value: Any) -> Any:
    if tf.is_tensor(value):
        return value
    return tf.compat.v1.convert_to_tensor_or_sparse_tensor(value)


def _by_output(weights: Any, names: list[str]) -> list[Any]:
    if len(names) == 1:
        if isinstance(weights, (list, tuple)) and len(weights) == 1:
            return list(weights)
        one = isinstance(weights, dict) and names[0] in weights
        return [weights[names[0]] if one else weights]
    if isinstance(weights, (list, tuple)):
        if len(weights) != len(names):
            raise ValueError(
                f"Provided `sample_weights` was a list of {len(weights)} elements, but the model "
                f"has {len(names)} outputs. You should provide one `sample_weights`array per model "
                "output."
            )
        return list(weights)
    if not isinstance(weights, Mapping):
        raise TypeError(
            "The model has multiple outputs, so `sample_weights` should be either a list or a "
            f"dict. Provided `sample_weights` type not understood: {weights}"
        )
    if unknown := sorted(set(weights) - set(names)):
        raise ValueError(
            f"Unknown entries in sample_weights dictionary: {unknown}. Only expected following "
            f"keys: {names}"
        )
    return [weights.get(name) for name in names]


def _whole_loss(model: Any) -> tf.Tensor:
    """The loss to report; under a strategy the model minimizes only a replica's share of it."""
    share = losses_utils.scale_loss_for_distribution(1.0)
    return model.total_loss if share == 1.0 else model.total_loss / share


def _metrics(model: Any, names_map: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The compiled metrics by name, without metrics that layers add."""
    if not getattr(model, "_compile_metrics", None):
        return None
    metrics = model._compile_metric_functions
    if not names_map:
        return {metric.name: metric for metric in metrics}
    expected, given = {metric.name for metric in metrics}, set(names_map)
    if unknown := expected - given:
        raise ValueError(
            f"Invalid `metric_names_map`. The following keras model metric names:"
            f'"{list(unknown)}" do not exist in the `metric_names_map` dictionary'
        )
    if extra := given - expected:
        raise ValueError(
            "Invalid `metric_names_map`. There are unexpected keys in the `metric_names_map` "
            f"dictionary. Expected keys: {list(expected)}, Received: {list(extra)}"
        )
    return {names_map[metric.name]: metric for metric in metrics}


def _restore_in_place(model: Any) -> None:
    """Restores the attributes of a subclassed model that in-place cloning replaced."""
    if not model._is_graph_network and getattr(model, "_original_attributes_cache", None):
        tf_keras.__internal__.models.in_place_subclassed_model_state_restoration(model)


def _object_scaffold(model: Any) -> tf.compat.v1.train.Scaffold:
    track_global_step(model)
    by_key = graph_view.ObjectGraphView(model).frozen_saveable_objects()
    saver = tf.compat.v1.train.Saver(var_list=by_key, sharded=True)
    saver._object_restore_saver = object_checkpoint.frozen_saver(
        model
    )  # also reads checkpoints with another order of keys
    return tf.compat.v1.train.Scaffold(saver=saver)


def _signatures(
    model: Any, predictions: Mapping[str, tf.Tensor], classes: Mapping[str, Any] | None
) -> dict[str, Any]:
    signatures: dict[str, Any] = {_DEFAULT_SIGNATURE: export.PredictOutput(predictions)}
    if classes is None:
        return signatures
    names = set(model.output_names)
    if missed := set(classes) - names:
        raise _LinesKeyError(
            f"The list passed into {list(names)} does not cover requested {dict(classes)} keys "
            f"defined in the keras model.\n\tExpected keys: {set(classes)}\n\t{list(names)} keys: "
            f"{names}\n\tMissed keys: {missed}"
        )
    return signatures | {name: kind(predictions[name]) for name, kind in classes.items()}
