"""Calls model_fns of `tf.contrib.learn`, and turns what they return into specs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

# The original read arguments likewise.
from tensorflow.python.util import function_utils

from tpu_estimator_compat.engine.capture.user_functions import declared_arguments
from tpu_estimator_compat.estimator import EstimatorSpec
from tpu_estimator_compat.old_names.contrib.learn.keys import MetricKey
from tpu_estimator_compat.old_names.contrib.learn.metric_spec import MetricSpec
from tpu_estimator_compat.old_names.contrib.learn.model_fn_ops import ModelFnOps


def check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    """Refuses hyperparameters that model_fn does not take.

    Raises:
      ValueError: there are hyperparameters, and it takes none.
    """
    takes = "params" in function_utils.fn_args(model_fn)
    if params is not None and not takes:
        raise ValueError(
            f"Estimator's model_fn ({model_fn}) does not have a params argument, but params "
            f"({params}) were passed to the Estimator's constructor."
        )
    if params is None and takes:
        tf.logging.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to "
            "Estimator.",
            model_fn,
        )


def call_model_fn(
    model_fn: Callable[..., Any], features: Any, labels: Any, offered: dict[str, Any]
) -> ModelFnOps:
    """Calls model_fn.

    Args:
      model_fn: takes features and labels, by whatever name, and what else it declares.
      features: of a batch.
      labels: of a batch; None for none.
      offered: further arguments by name, the mode among them.

    Returns:
      What it returns; for a tuple of predictions, loss and train_op what that stands for.

    Raises:
      ValueError: it returns something else.
    """
    result = model_fn(features, labels, **declared_arguments(model_fn, offered))
    if isinstance(result, ModelFnOps):
        return result
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")
    predictions, loss, train_op = result
    return ModelFnOps(offered["mode"], predictions, loss, train_op)


def evaluation_spec(ops: ModelFnOps) -> EstimatorSpec:
    """The spec of an evaluation.

    Args:
      ops: the result of model_fn, with all metrics.

    Raises:
      NotImplementedError: a metric is called as the loss is, or is no pair.
    """
    given = ops.eval_metric_ops
    if MetricKey.LOSS in given:
        raise NotImplementedError(
            f"A metric called {MetricKey.LOSS!r} would stand for the mean of the loss in the "
            "results of an evaluation. Give it another name."
        )
    pairs = {name: _pair(value) for name, value in given.items()}
    return ops._replace(eval_metric_ops=pairs).estimator_spec()


def made(metrics: Mapping[Any, Any] | None, features: Any, labels: Any, predictions: Any) -> Any:
    """The metrics' values for a batch, by name.

    Args:
      metrics: names to `MetricSpec`s; or to functions of predictions and labels, of the prediction
        `key` where the name is `(name, key)`.
      features: of a batch.
      labels: of a batch.
      predictions: of a batch.

    Raises:
      ValueError: a name that does not go with the predictions.
    """
    result = {}
    for name, metric in sorted((metrics or {}).items()):
        if isinstance(metric, MetricSpec):
            result[name] = metric.create_metric_ops(features, labels, predictions)
            continue
        tf.logging.warning(
            "Please specify metrics using MetricSpec. Using bare functions or (key, fn) tuples is "
            "deprecated and support for it will be removed on Oct 1, 2016."
        )
        key = None
        if isinstance(name, tuple):
            if len(name) != 2:
                raise ValueError(
                    f"Invalid metric for {name}. It returned a tuple with len {len(name)}, "
                    "expected 2."
                )
            name, key = name
        result[name] = metric(*_chosen(metrics, predictions, labels, key))
    return result


def _chosen(metrics: Any, predictions: Any, labels: Any, key: Any) -> tuple[Any, Any]:
    only = next(iter(labels.values())) if isinstance(labels, dict) and len(labels) == 1 else labels
    if key is None:
        if isinstance(predictions, dict):
            raise ValueError(
                "Metrics passed provide only name, no prediction, but predictions are dict. "
                f"Metrics: {metrics}, Labels: {only}."
            )
        return predictions, only
    if not isinstance(predictions, dict):
        raise ValueError(
            "Metrics passed provide (name, prediction), but predictions are not dict. "
            f"Metrics: {metrics}, Predictions: {predictions}."
        )
    if isinstance(labels, dict) and key in labels:
        return predictions[key], labels[key]
    return predictions[key], only


def _pair(metric: Any) -> tuple[Any, Any]:
    """A metric's value and update; a tensor alone is refused."""
    if isinstance(metric, (tuple, list)) and len(metric) == 2:
        return tuple(metric)
    raise NotImplementedError(
        f"A metric must be a pair of a value and an update; got {metric}. Take one of "
        "`tf.metrics`, or of the `streaming_` ones of `tf.contrib.metrics`: a tensor alone is of "
        "one batch."
    )
