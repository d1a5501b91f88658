"""The result of a TPUEstimator's `model_fn`: tensors for the device, functions for the host."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from tpu_estimator_compat.config.arguments import check_callable
from tpu_estimator_compat.spec import validation
from tpu_estimator_compat.spec.estimator_spec import EstimatorSpec
from tpu_estimator_compat.spec.hooks import HostCallHook

# The original's functions: they find the same arguments of wrappers and partials.
from tpu_estimator_compat.tf_internals import function_utils, tf_inspect

HostCall = tuple[Callable[..., Any], list[Any] | tuple[Any, ...] | dict[str, Any]]


class _TPUEstimatorSpecFields(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metrics: Any
    export_outputs: Any
    scaffold_fn: Any
    host_call: Any
    training_hooks: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class TPUEstimatorSpec(_TPUEstimatorSpecFields):
    """Ops and objects returned from a `model_fn` and passed to `TPUEstimator`.

    The other fields are those of `EstimatorSpec`; each mode needs the same ones.

    Args:
      eval_metrics: `(metric_fn, tensors)`. The tensors, examples along axis 0, are concatenated
        over the replicas and given to `metric_fn` on the host: a list by position, a dict by
        name. It returns a dict of `(value, update_op)` pairs or Keras metrics.
      scaffold_fn: makes a `tf.compat.v1.train.Scaffold`, on the host.
      host_call: `(function, tensors)`, handed over as `eval_metrics` are; the tensors or ops it
        returns run on the host at every step.

    Raises:
      TypeError: a field is of the wrong type.
      ValueError: a field that the mode needs is missing, `eval_metrics` or `host_call` is not a
        pair, `loss` is not a scalar, or a tensor is not from the default graph.
      RuntimeError: the number of tensors is not the number of arguments of their function.

    Example:
      >>> TPUEstimatorSpec("infer", predictions={"x": tf.constant([1.0])}).mode
      'infer'
    """

    def __new__(
        cls,
        mode: str,
        predictions: tf.Tensor | dict[str, tf.Tensor] | None = None,
        loss: tf.Tensor | None = None,
        train_op: tf.Operation | tf.Tensor | None = None,
        eval_metrics: HostCall | None = None,
        export_outputs: dict[str, Any] | None = None,
        scaffold_fn: Callable[[], tf.compat.v1.train.Scaffold] | None = None,
        host_call: HostCall | None = None,
        training_hooks: Iterable[Any] | None = None,
        evaluation_hooks: Iterable[Any] | None = None,
        prediction_hooks: Iterable[Any] | None = None,
    ) -> "TPUEstimatorSpec":
        validation.check_mode(mode)
        if scaffold_fn is not None:
            advice = "Give a function that takes nothing and returns a Scaffold."
            check_callable(scaffold_fn, "scaffold_fn", advice)
        # In the original's order: of two mistakes, the same one is reported.
        check_host_call("eval_metrics", eval_metrics)
        check_host_call("host_call", host_call)
        training_hooks = validation.checked_hooks(training_hooks)
        evaluation_hooks = validation.checked_hooks(evaluation_hooks)
        prediction_hooks = validation.checked_hooks(prediction_hooks)
        train_op = validation.checked_train_op(train_op, mode)
        loss = validation.checked_loss(loss, mode)
        predictions = validation.checked_predictions(predictions, mode)
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metrics=eval_metrics,
            export_outputs=validation.checked_export_outputs(export_outputs, predictions, mode),
            scaffold_fn=scaffold_fn,
            host_call=host_call,
            training_hooks=training_hooks,
            evaluation_hooks=evaluation_hooks,
            prediction_hooks=prediction_hooks,
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same model for a plain `Estimator`, all in the current graph.

        Calls `metric_fn`, the host call's function and `scaffold_fn`, in this order; a
        `HostCallHook` in all three modes runs the host call's results.
        """
        eval_metric_ops = None
        if self.eval_metrics is not None:
            eval_metric_ops = call_on_host("eval_metrics", self.eval_metrics)
        hooks: tuple[HostCallHook, ...] = ()
        if self.host_call is not None:
            hooks = (HostCallHook(call_on_host("host_call", self.host_call)),)
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=eval_metric_ops,
            export_outputs=self.export_outputs,
            scaffold=self.scaffold_fn() if self.scaffold_fn else None,
            training_hooks=self.training_hooks + hooks,
            evaluation_hooks=self.evaluation_hooks + hooks,
            prediction_hooks=self.prediction_hooks + hooks,
        )


def check_host_call(name: str, host_call: Any) -> None:
    """Raises unless an `eval_metrics` or `host_call` is None or `(function, tensors)`."""
    if host_call is None:
        return
    if not isinstance(host_call, tuple | list):
        raise ValueError(f"{name} should be tuple or list, (function, tensors). Got {host_call!r}.")
    if len(host_call) != 2:
        raise ValueError(
            f"{name} should have two elements. Got {len(host_call)}; give (function, tensors)."
        )
    function, tensors = host_call
    if not callable(function):
        raise TypeError(f"{name}[0] should be callable. Got {function!r}.")
    if not isinstance(tensors, tuple | list | dict):
        raise ValueError(f"{name}[1] should be tuple or list, or dict. Got {tensors!r}.")
    if not isinstance(tensors, dict):
        _check_argument_count(name, function, len(tensors))


def _check_argument_count(name: str, function: Callable[..., Any], tensors: int) -> None:
    if tf_inspect.getfullargspec(function).varargs is not None:
        return
    arguments = function_utils.fn_args(function)
    if tensors != len(arguments):
        raise RuntimeError(
            f"In TPUEstimatorSpec.{name}, length of tensors {tensors} does not match method args "
            f"of the function, which takes {len(arguments)}. Its arguments are {list(arguments)}."
        )


def call_on_host(name: str, host_call: HostCall) -> Any:
    """Calls the function of `eval_metrics` or `host_call` (`name`) with its tensors."""
    check_host_call(name, host_call)
    function, tensors = host_call
    if not isinstance(tensors, dict):
        return function(*tensors)
    try:
        return function(**tensors)
    except TypeError as error:
        tf.compat.v1.logging.warning(
            "Exception while calling %s: %s. It is likely the tensors (%s[1]) do not match the "
            "function's arguments",
            name,
            error,
            name,
        )
        raise
