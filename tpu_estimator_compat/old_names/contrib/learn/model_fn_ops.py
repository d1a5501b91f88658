"""`tf.contrib.learn.ModelFnOps`: what its model_fns return, and the spec that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import EstimatorSpec, export
from tpu_estimator_compat.old_names.contrib.learn.keys import (
    MetricKey,
    ModeKeys,
    PredictionKey,
    ProblemType,
)

_SERVING_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class _Fields(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    output_alternatives: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    mode: Any


class ModelFnOps(_Fields):
    """Tensors and ops of a mode.

    Args:
      mode: a `ModeKeys`. TRAIN needs `loss` and `train_op`, EVAL `loss` and `predictions`, INFER
        `predictions`.
      predictions: a tensor, or a dict of tensors.
      loss: a scalar.
      train_op: an op or a tensor; running it makes one step.
      eval_metric_ops: metric name to `(value, update_op)`, or to a tensor.
      output_alternatives: head name to `(ProblemType, {name: tensor})`, for exports.
      training_chief_hooks: hooks of the chief in training.
      training_hooks: hooks of all workers in training.
      scaffold: a `tf.train.Scaffold`; None for a default one.

    Raises:
      ValueError: no such mode, a field that the mode needs is missing, or `loss` is no scalar.
      TypeError: a hook is of another type.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: dict[str, Any] | None = None,
        output_alternatives: dict[str, tuple[int, dict[str, Any]]] | None = None,
        training_chief_hooks: Sequence[Any] | None = None,
        training_hooks: Sequence[Any] | None = None,
        scaffold: Any = None,
    ) -> ModelFnOps:
        ModeKeys.validate(mode)
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError("eval_metric_ops must be a dict.")
        return super().__new__(
            cls,
            predictions=_checked_predictions(predictions, mode),
            loss=_checked_loss(loss, mode),
            train_op=_checked_train_op(train_op, mode),
            eval_metric_ops={} if eval_metric_ops is None else eval_metric_ops,
            output_alternatives=output_alternatives,
            training_chief_hooks=_checked_hooks(training_chief_hooks),
            training_hooks=_checked_hooks(training_hooks),
            scaffold=scaffold,
            mode=mode,
        )

    def estimator_spec(
        self, default_serving_output_alternative_key: str | None = None
    ) -> EstimatorSpec:
        """The spec of `tf.estimator` with the same content.

        Args:
          default_serving_output_alternative_key: the key of the head that is served by default.

        Raises:
          ValueError: a problem type that there is not.
        """
        alternatives = self.output_alternatives
        if alternatives and len(alternatives) > 1 and _SERVING_DEFAULT not in alternatives:
            served = alternatives[default_serving_output_alternative_key]
            alternatives = {**alternatives, _SERVING_DEFAULT: served}
        outputs = {name: export_output(*each) for name, each in (alternatives or {}).items()}
        metrics = {n: each for n, each in self.eval_metric_ops.items() if n != MetricKey.LOSS}
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=metrics,
            export_outputs=outputs or None,
            training_chief_hooks=self.training_chief_hooks,
            training_hooks=self.training_hooks,
            scaffold=self.scaffold,
        )


def export_output(problem_type: int, tensors: dict[str, Any]) -> Any:
    """The export outputs of `tf.estimator` for the outputs of a head.

    Args:
      problem_type: a `ProblemType`.
      tensors: of the head, by name.

    Raises:
      ValueError: a problem type that there is not.
    """
    scores = scores_of(tensors)
    if problem_type == ProblemType.LINEAR_REGRESSION:
        return export.RegressionOutput(scores)
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        return export.ClassificationOutput(scores=scores, classes=_classes(tensors))
    if problem_type == ProblemType.UNSPECIFIED:
        return export.PredictOutput(tensors)
    raise ValueError(f"Unknown problem_type={problem_type}")


def scores_of(tensors: dict[str, Any]) -> Any:
    """The scores of a head, or else its probabilities; None for neither."""
    scores = tensors.get(PredictionKey.SCORES)
    return tensors.get(PredictionKey.PROBABILITIES) if scores is None else scores


def _classes(tensors: dict[str, Any]) -> Any:
    """The classes as a server classifies: only texts."""
    classes = tensors.get(PredictionKey.CLASSES)
    if classes is not None and classes.dtype == tf.string:
        return classes
    what = "None" if classes is None else "not string"
    tf.logging.warning("classes is %s, Servo inference will not have class ids.", what)
    return None


def _checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    return train_op if isinstance(train_op, tf.Operation) else tf.convert_to_tensor(train_op).op


def _checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    loss = tf.convert_to_tensor(loss)
    if loss.shape.num_elements() not in (None, 1):
        raise ValueError(f"Loss must be scalar: {loss}.")
    return loss if loss.shape.is_compatible_with([]) else tf.reshape(loss, [])


def _checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode in (ModeKeys.INFER, ModeKeys.EVAL):
            raise ValueError("Missing predictions.")
        return None
    if isinstance(predictions, dict):
        return {name: _tensor(value) for name, value in predictions.items()}
    return _tensor(predictions)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, tf.SparseTensor) else tf.convert_to_tensor(value)


def _checked_hooks(hooks: Sequence[Any] | None) -> list[Any]:
    for hook in hooks or []:
        if not isinstance(hook, tf.train.SessionRunHook):
            raise TypeError(
                "All hooks returned from model_fn must be SessionRunHook instances, got instance "
                f"of {type(hook)}: {hook}"
            )
    return list(hooks or [])


__all__ = ["ModeKeys", "ModelFnOps"]
