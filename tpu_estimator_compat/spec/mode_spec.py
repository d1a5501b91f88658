"""`ModeSpec`: an EstimatorSpec or a TPUEstimatorSpec in the one form that the engine takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.spec import validation
from tpu_estimator_compat.spec.estimator_spec import EstimatorSpec
from tpu_estimator_compat.spec.hooks import HostCallHook
from tpu_estimator_compat.spec.tpu_estimator_spec import HostCall, TPUEstimatorSpec
from tpu_estimator_compat.spec.validation import ModeKeys


@dataclasses.dataclass(frozen=True)
class ModeSpec:
    """The result of a model_fn for one mode.

    Attributes:
      loss: a scalar; may be None in PREDICT.
      train_op: makes a training step; may be None in other modes.
      metrics: name to `(value, update_op)`, built in model_fn's graph.
      eval_metrics: `(metric_fn, tensors)`, for the host.
      host_call: `(function, tensors)`, for the host.
      called_on_host: ops of host calls that were made in the graph, and that hooks run.
      make_scaffold: makes the Scaffold; call it in the mode's graph.
      for_tpu: whether model_fn returned a TPUEstimatorSpec.
    """

    loss: tf.Tensor | None
    train_op: Any
    predictions: Any
    metrics: dict[str, Any]
    eval_metrics: HostCall | None
    host_call: HostCall | None
    called_on_host: tuple[Any, ...]
    hooks: tuple[Any, ...]
    chief_hooks: tuple[Any, ...]
    make_scaffold: Callable[[], tf.compat.v1.train.Scaffold]
    for_tpu: bool


def mode_spec(spec: EstimatorSpec | TPUEstimatorSpec, mode: str) -> ModeSpec:
    """The `ModeSpec` of a spec from model_fn; call it in model_fn's graph."""
    hooks = {
        ModeKeys.TRAIN: spec.training_hooks,
        ModeKeys.EVAL: spec.evaluation_hooks,
        ModeKeys.PREDICT: spec.prediction_hooks,
    }[mode]
    calls = [hook.fetches for hook in hooks or () if isinstance(hook, HostCallHook)]
    loss = validation.checked_loss(spec.loss, mode)
    return ModeSpec(
        loss=tf.convert_to_tensor(loss) if isinstance(loss, tf.Variable) else loss,
        train_op=validation.checked_train_op(spec.train_op, mode),
        predictions=validation.checked_predictions(spec.predictions, mode),
        metrics=getattr(spec, "eval_metric_ops", None) or {},
        eval_metrics=getattr(spec, "eval_metrics", None),
        host_call=getattr(spec, "host_call", None),
        called_on_host=tuple(x for x in tf.nest.flatten(calls) if x is not None),
        hooks=tuple(hooks or ()),
        chief_hooks=tuple(getattr(spec, "training_chief_hooks", None) or ()),
        make_scaffold=lambda: _scaffold(spec),
        for_tpu=isinstance(spec, TPUEstimatorSpec),
    )


def _scaffold(spec: Any) -> tf.compat.v1.train.Scaffold:
    if not isinstance(spec, TPUEstimatorSpec):
        return spec.scaffold or tf.compat.v1.train.Scaffold()
    if spec.scaffold_fn is None:
        return tf.compat.v1.train.Scaffold()
    scaffold = spec.scaffold_fn()
    if scaffold is None:
        raise ValueError("TPUEstimatorSpec.scaffold_fn returns None, which is not allowed")
    return validation.checked_scaffold(scaffold)
