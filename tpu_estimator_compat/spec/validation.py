"""Checks of a spec's fields (types, modes, graphs), with the original's error messages.

The wrong type raises TypeError; a field that the mode needs and lacks, or a tensor of another graph
than the default one, raises ValueError.
"""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.config.arguments import all_of, as_list
from tpu_estimator_compat.spec.keras_metrics import is_keras_metric, keras_metric_pair
from tpu_estimator_compat.tf_internals import EstimatorModeKeys as ModeKeys

# Fills in the default signature of a SavedModel; the original used this function too.
from tpu_estimator_compat.tf_internals import get_export_outputs

# Covers symbolic and eager tensors and variables, but not composite tensors.
_TENSOR = tf.__internal__.types.Tensor


_ABOUT_KERAS = (
    ". Optimizers of Keras 3 return no operation; their updates run by themselves. Let train_op be "
    "tf.compat.v1.assign_add(tf.compat.v1.train.get_global_step(), 1), or take an optimizer of "
    "tf_keras.optimizers.legacy, whose `iterations` can be set to the global step."
)


def check_mode(mode: Any) -> None:
    modes = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
    if mode not in (None, *modes):  # None is the mode of a model_fn without that argument
        raise ValueError(
            f"mode must be one of {modes}, the ModeKeys; got {mode!r}. Pass on the mode that "
            "model_fn is called with."
        )


def check_is_mode(mode: Any) -> None:
    """Raises ValueError for an argument that is no mode."""
    modes = [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT]
    if mode not in modes:
        raise ValueError(f"mode must be one of {modes}, got {mode!r}.")


def checked_train_op(train_op: Any, mode: str) -> tf.Operation | tf.Tensor | None:
    """`train_op`, an op or a tensor of the default graph; for a variable, its op."""
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError(f"Missing train_op. A spec with mode={mode!r} needs one.")
        return None
    of_keras = type(train_op).__module__.startswith("keras.")
    if of_keras or not isinstance(train_op, tf.Operation | _TENSOR):
        advice = _ABOUT_KERAS if of_keras else ""
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}{advice}")
    if isinstance(train_op, tf.Variable):
        train_op = train_op.op
    _check_graph(train_op, "train_op")
    return train_op


def checked_loss(loss: Any, mode: str) -> tf.Tensor | None:
    """`loss` as a scalar tensor; one of shape `[1]` is reshaped."""
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError(f"Missing loss. A spec with mode={mode!r} needs one.")
        return None
    shape = _checked_tensor(loss, "loss").shape
    if shape.num_elements() not in (None, 1):
        raise ValueError(
            f"Loss must be scalar, given: {loss}. Average or sum it over the examples first."
        )
    if not shape.is_compatible_with(tf.TensorShape([])):
        loss = tf.reshape(loss, [])
    _check_graph(loss, "loss")
    if not (loss.dtype.is_floating or loss.dtype.is_integer):
        raise TypeError(f"loss must be a number, given: {loss} of dtype {loss.dtype.name}")
    return loss


def checked_predictions(predictions: Any, mode: str) -> tf.Tensor | dict[str, tf.Tensor]:
    """`predictions`, a tensor or a dict of tensors; `{}` for None."""
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError(f"Missing predictions. A spec with mode={mode!r} needs them.")
        return {}
    if not isinstance(predictions, dict):
        _check_graph(_checked_tensor(predictions, "predictions"), "prediction values")
        return predictions
    for key, value in predictions.items():
        _checked_tensor(value, f"predictions[{key}]")
    for key, value in predictions.items():
        _check_graph(value, "prediction values", key)
    return dict(predictions)


def checked_export_outputs(
    export_outputs: Any, predictions: tf.Tensor | dict[str, tf.Tensor], mode: str
) -> dict[str, Any] | None:
    """`export_outputs`; in PREDICT mode with a default serving signature."""
    if mode == ModeKeys.PREDICT:
        return get_export_outputs(export_outputs, predictions)
    return export_outputs


def checked_hooks(hooks: Iterable[Any] | None) -> tuple[tf.compat.v1.train.SessionRunHook, ...]:
    kind, hooks = tf.compat.v1.train.SessionRunHook, as_list(hooks, "hooks", "SessionRunHook")
    return tuple(all_of(kind, hooks, "All hooks must be SessionRunHook instances"))


def checked_scaffold(scaffold: Any) -> tf.compat.v1.train.Scaffold:
    scaffold = scaffold or tf.compat.v1.train.Scaffold()
    if not isinstance(scaffold, tf.compat.v1.train.Scaffold):
        raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
    return scaffold


def checked_eval_metric_ops(eval_metric_ops: Any) -> dict[str, tuple[Any, Any]]:
    """A new dict of `(value, update_op)` pairs; Keras metrics become pairs."""
    if eval_metric_ops is None:
        return {}
    if not isinstance(eval_metric_ops, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {eval_metric_ops}")
    for key in eval_metric_ops:
        if not isinstance(key, str):
            raise TypeError(f"Keys of eval_metric_ops must be strings, given: {key!r}")
    return {key: _metric_pair(key, value) for key, value in eval_metric_ops.items()}


def _metric_pair(key: str, value: Any) -> tuple[Any, Any]:
    if is_keras_metric(value):
        return keras_metric_pair(value)
    if not isinstance(value, tuple) or len(value) != 2:
        raise TypeError(
            "Values of eval_metric_ops must be (metric_value, update_op) tuples, "
            f"given: {value} for key: {key}"
        )
    for part in tf.nest.flatten(value):
        _check_graph(part, "eval_metric_ops", key)
    return value


def _checked_tensor(value: Any, name: str) -> tf.Tensor:
    if not isinstance(value, _TENSOR):
        raise TypeError(f"{name} must be Tensor, given: {value}")
    return value


def _check_graph(value: Any, field: str, key: str | None = None) -> None:
    if tf.executing_eagerly():
        return
    name = getattr(value, "name", repr(value))
    if getattr(value, "graph", None) is not tf.compat.v1.get_default_graph():
        label = name if key is None else f"{key}: {name}"
        raise ValueError(
            f'{field} with "{label}" must be from the default graph. '
            "Possible causes of this error include: \n\n"
            f"1) {field} was created outside the context of the default graph.\n\n"
            "2) The object passed through to EstimatorSpec was not created in the most recent "
            'call to "model_fn".'
        )
