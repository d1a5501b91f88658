"""The parts of an export of `tf.contrib.learn`: receivers of requests, and signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator import EstimatorSpec, export
from tpu_estimator_compat.old_names.contrib.learn.keys import PredictionKey, ProblemType
from tpu_estimator_compat.old_names.contrib.learn.model_fn_ops import ModelFnOps, scores_of

_INPUT = "default_input_alternative"
_ONLY_OUTPUT = "default_output_alternative"
_FEATURE_KEYS = "input_feature_keys"  # a collection
_SERVING_DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class InputFnOps(NamedTuple):
    """The result of a serving input function.

    Attributes:
      features: for model_fn, a dict.
      labels: None.
      default_inputs: the placeholders that a request feeds, by name.
    """

    features: Any
    labels: Any
    default_inputs: Any


def build_parsing_serving_input_fn(
    feature_spec: dict[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function of requests that are serialized `tf.Example`s.

    Args:
      feature_spec: feature name to its `FixedLenFeature` or `VarLenFeature`.
      default_batch_size: examples in a request; None for any number.
    """

    receive = export.build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size)

    def input_fn() -> InputFnOps:
        received = receive()
        return InputFnOps(received.features, None, received.receiver_tensors)

    return input_fn


def build_default_serving_input_fn(
    features: dict[str, Any], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """A function of requests that feed the features themselves.

    Args:
      features: feature name to a tensor like it.
      default_batch_size: examples in a request; None for any number.
    """

    def input_fn() -> InputFnOps:
        fed = {
            name: tf.placeholder(
                like.dtype, [default_batch_size, *like.shape.as_list()[1:]], name=like.op.name
            )
            for name, like in features.items()
        }
        return InputFnOps(fed, None, fed)

    return input_fn


def receiver(input_fn: Callable[[], Any]) -> Callable[[], export.ServingInputReceiver]:
    """A function of requests in the form that `tf.estimator` takes.

    Args:
      input_fn: returns `InputFnOps`.

    Returns:
      A function that raises ValueError where `input_fn` returns no features or no inputs.
    """

    def receive() -> export.ServingInputReceiver:
        ops = input_fn()
        if not isinstance(ops, InputFnOps) or not ops.default_inputs:
            raise ValueError("A default input_alternative must be provided.")
        if not ops.features:
            raise ValueError("Features must be defined.")
        for name in ops.features:
            tf.add_to_collection(_FEATURE_KEYS, name)
        return export.ServingInputReceiver(ops.features, ops.default_inputs)

    return receive


def exported_spec(ops: ModelFnOps, default: str | None) -> EstimatorSpec:
    """The spec whose export has the signatures that `tf.contrib.learn` wrote.

    Args:
      ops: the result of model_fn.
      default: the head that is served by default; None for the only one.

    Raises:
      ValueError: there is no such head, or there are several and none is named.
    """
    heads = ops.output_alternatives
    if default and default not in (heads or {}):
        raise ValueError(
            f"Requested default_output_alternative: {default}, but available "
            f"output_alternatives are: {sorted(heads or {})}"
        )
    if not heads:
        outputs = ops.predictions
        if not isinstance(outputs, dict):
            outputs = {PredictionKey.GENERIC: outputs}
        heads = {_ONLY_OUTPUT: (ProblemType.UNSPECIFIED, outputs)}
    if not default and len(heads) > 1:
        raise ValueError(
            "Please specify a default_output_alternative.  Available output_alternatives are: "
            f"{sorted(heads)}"
        )
    outputs = {f"{_INPUT}:{name or 'None'}": _output(*head) for name, head in heads.items()}
    outputs[_SERVING_DEFAULT] = _output(*heads[default or next(iter(heads))])
    return EstimatorSpec(ops.mode, ops.predictions, scaffold=ops.scaffold, export_outputs=outputs)


def _output(problem_type: int, tensors: dict[str, Any]) -> Any:
    """As servers classify or regress, if the tensors allow it; else as they predict."""
    classes = tensors.get(PredictionKey.CLASSES)
    if classes is not None and classes.dtype != tf.string:
        classes = None
    scores = scores_of(tensors)
    if problem_type == ProblemType.LINEAR_REGRESSION and len(tensors) == 1:
        [value] = tensors.values()
        return export.RegressionOutput(value)
    if problem_type in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        if classes is None and scores is None and len(tensors) == 1:
            [only] = tensors.values()
            classes, scores = (only, None) if only.dtype == tf.string else (None, only)
        if classes is not None or scores is not None:
            return export.ClassificationOutput(scores=scores, classes=classes)
    return export.PredictOutput(tensors)


__all__ = ["InputFnOps", "build_default_serving_input_fn", "build_parsing_serving_input_fn"]
