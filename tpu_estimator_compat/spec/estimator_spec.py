"""The result of a plain Estimator's `model_fn`."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.spec import validation


class _EstimatorSpecFields(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class EstimatorSpec(_EstimatorSpecFields):
    """Ops and objects returned from a `model_fn` and passed to an `Estimator`.

    Args:
      mode: a `ModeKeys`. TRAIN needs `loss` and `train_op`, EVAL `loss`, PREDICT `predictions`;
        fields a mode does not need may be given all the same.
      predictions: a tensor or a dict of tensors; examples along axis 0.
      loss: a tensor, scalar or of shape `[1]`.
      train_op: an op or a tensor; running it makes one step.
      eval_metric_ops: metric name to `(value, update_op)` or to a Keras metric on which
        `update_state` was called; kept as pairs.
      export_outputs: signature name to `ExportOutput`; None exports `predictions`.
      training_chief_hooks: hooks of the chief in training.
      training_hooks: hooks of all workers in training.
      scaffold: a `tf.compat.v1.train.Scaffold`; None for a default one.
      evaluation_hooks: hooks in evaluation.
      prediction_hooks: hooks in prediction.

    Raises:
      TypeError: a field is of the wrong type.
      ValueError: the mode is unknown, a field that it needs is missing, `loss` is not a scalar, or
        a tensor is not from the default graph.

    Example:
      >>> EstimatorSpec("infer", predictions={"x": tf.constant([1.0])}).mode
      'infer'
    """

    def __new__(
        cls,
        mode: str,
        predictions: tf.Tensor | dict[str, tf.Tensor] | None = None,
        loss: tf.Tensor | None = None,
        train_op: tf.Operation | tf.Tensor | None = None,
        eval_metric_ops: dict[str, Any] | None = None,
        export_outputs: dict[str, Any] | None = None,
        training_chief_hooks: Iterable[Any] | None = None,
        training_hooks: Iterable[Any] | None = None,
        scaffold: tf.compat.v1.train.Scaffold | None = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> "EstimatorSpec":
        validation.check_mode(mode)
        # In the original's order: of two mistakes, the same one is reported.
        train_op = validation.checked_train_op(train_op, mode)
        loss = validation.checked_loss(loss, mode)
        predictions = validation.checked_predictions(predictions, mode)
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            export_outputs=validation.checked_export_outputs(export_outputs, predictions, mode),
            training_hooks=validation.checked_hooks(training_hooks),
            evaluation_hooks=validation.checked_hooks(evaluation_hooks),
            prediction_hooks=validation.checked_hooks(prediction_hooks),
            training_chief_hooks=validation.checked_hooks(training_chief_hooks),
            eval_metric_ops=validation.checked_eval_metric_ops(eval_metric_ops),
            scaffold=validation.checked_scaffold(scaffold),
        )

    def _replace(self, **kwds: Any) -> "EstimatorSpec":
        """A validated copy with other values, but the same mode."""
        if kwds.get("mode", self.mode) != self.mode:
            raise ValueError(
                "mode of EstimatorSpec cannot be changed."
                f" Got {kwds['mode']!r} for a spec of mode {self.mode!r}; build a new spec."
            )
        fields = [kwds.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if kwds:
            # The original let unknown names pass in silence; a script may rely on it.
            tf.compat.v1.logging.warning("EstimatorSpec has no fields %s: ignored.", sorted(kwds))
        return EstimatorSpec(*fields)
