"""The metrics of a captured evaluation as Keras' own, by the calls that made them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops

v1 = tf.compat.v1


@dataclasses.dataclass
class Found:
    """A metric of Keras, the arguments of its `update_state`, and of its constructor.

    `source` is that of a subclass where Keras' own gives other values.
    """

    cls: str
    arguments: dict[str, tf.Tensor]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    source: str = ""

    @property
    def path(self) -> str:
        return self.cls if self.source else f"keras.metrics.{self.cls}"


@dataclasses.dataclass
class Call:
    """A call of `name` in `tf.metrics`, or of `update_state` of a Keras metric.

    Attributes:
      given: all its arguments.
      made: the value and the update that `tf.metrics` returned, or the Keras metric.
    """

    name: str
    given: dict[str, Any]
    made: Any

    def makes(self, value: Any, update: Any) -> bool:
        """Whether a pair of an evaluation is what the call made."""
        if isinstance(self.made, tuple):
            return self.made[0] is value and self.made[1] is update
        updates = update.control_inputs if isinstance(update, tf.Operation) else []
        written = {handle.name for op in updates for handle in graph_ops.written(op)}
        own = [v if isinstance(v, tf.Variable) else v.value for v in self.made.variables]
        return written == {variable.handle.name for variable in own}


@contextlib.contextmanager
def recorded(calls: list[Call]) -> Iterator[None]:
    """A context in which calls that make metrics are added to `calls`."""
    modules = [sys.modules[name] for name in ("keras", "tf_keras") if name in sys.modules]
    kinds = [k for m in modules for k in vars(m.metrics).values() if isinstance(k, type)]
    bases = {base for kind in kinds for base in kind.__mro__ if "update_state" in vars(base)}
    places = [(v1.metrics, name) for name in _RULES] + [(base, "update_state") for base in bases]
    entered: list[Any] = []

    def recording(own: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(own)

        @functools.wraps(own)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            arguments = dict(given.arguments)
            metric = arguments.pop("self", None)
            if metric is not None and metric not in entered:  # and not its base's update
                calls.append(Call(type(metric).__name__, arguments, metric))
            entered.append(metric)
            try:
                made = own(*args, **kwargs)
            finally:
                entered.pop()
            if metric is None:
                calls.append(Call(own.__name__, arguments, made))
            return made

        return call

    with contextlib.ExitStack() as stack:
        for owner, name in places:
            own = getattr(owner, name)
            stack.callback(setattr, owner, name, own)
            setattr(owner, name, recording(own))
        yield


def find(metrics: dict[str, Any], calls: list[Call]) -> tuple[dict[str, Found], list[str]]:
    """By name, the metrics of an evaluation that Keras has, and a note on the others.

    It is called in the evaluation's graph, and may add to it.
    """
    found: dict[str, Found | None] = {}
    for name, metric in metrics.items():
        pair = metric if isinstance(metric, tuple) else (None, None)
        made = [call for call in calls if call.makes(*pair)] if pair[1] is not None else []
        if len(made) == 1:
            of_keras = not isinstance(made[0].made, tuple)
            found[name] = (
                _of_keras(made[0]) if of_keras else _RULES[made[0].name](_Given(made[0].given))
            )
    others = ", ".join(name for name in metrics if not found.get(name))
    note = (
        f"The file leaves out metrics that are none of Keras': {others}. Compute them of the "
        "predictions, or write subclasses of keras.metrics.Metric."
    )
    return {k: each for k, each in found.items() if each}, [note] if others else []


def _of_keras(call: Call) -> Found | None:
    """Of a metric of an older Keras, the same of today's; None where that has it not."""
    kind = type(call.made)
    today = getattr(keras.metrics, call.name, None)
    if today is None or kind.__module__.split(".")[0] not in ("keras", "tf_keras"):
        return None
    known = inspect.signature(today).parameters
    config = {k: v for k, v in call.made.get_config().items() if k not in ("name", "dtype")}
    options = {k: v for k, v in config.items() if k not in known or known[k].default != v}
    simple = all(isinstance(v, (int, float, str, list)) for v in options.values())
    given = {k: tf.convert_to_tensor(v) for k, v in call.given.items() if v is not None}
    if "sample_weight" in given and _unbroadcast(given["sample_weight"]) is None:
        del given["sample_weight"]
    return Found(call.name, given, options) if simple and options.keys() <= known.keys() else None


class _Given:
    """The arguments of a call; tensors where a metric takes tensors."""

    def __init__(self, given: dict[str, Any]):
        self.numbers = given
        self.labels, self.predictions, self.values = (
            tf.convert_to_tensor(given.get(key, 0)) for key in ("labels", "predictions", "values")
        )
        weights = given["weights"]
        weights = None if weights is None else _unbroadcast(tf.convert_to_tensor(weights))
        self.weighted = {} if weights is None else {"sample_weight": weights}

    def pair(self, cls: str, predictions: tf.Tensor, **options: Any) -> Found:
        arguments = {"y_true": self.labels, "y_pred": predictions, **self.weighted}
        return Found(cls, arguments, options)

    def mean(self, values: tf.Tensor) -> Found:
        return Found("Mean", {"values": values, **self.weighted})


def _unbroadcast(weights: tf.Tensor) -> tf.Tensor | None:
    """Weights before they were multiplied by ones of the values' shape; None for ones."""
    if weights.op.type == "Mul":
        factors = [each for each in map(_unbroadcast, weights.op.inputs) if each is not None]
        return weights if len(factors) > 1 else next(iter(factors), None)
    value = tf.get_static_value(weights.op.inputs[1] if weights.op.type == "Fill" else weights)
    is_one = weights.op.type == "OnesLike" or (value is not None and bool((value == 1).all()))
    return None if is_one else weights


def _accuracy(given: _Given) -> Found:
    predictions, labels = given.predictions, given.labels
    if predictions.dtype.is_floating and not labels.dtype.is_floating:
        predictions = tf.cast(predictions, labels.dtype)  # Keras casts the labels
    return given.pair("Accuracy", predictions)


def _counted(cls: str) -> Callable[[_Given], Found]:
    return lambda given: given.pair(cls, tf.cast(given.predictions, tf.bool))


def _difference(cls: str, of: Callable[[tf.Tensor], tf.Tensor]) -> Callable[[_Given], Found]:
    """Keras' own averages the last axis first: of one without other axes, the whole batch."""

    def rule(given: _Given) -> Found:
        labels, predictions = given.labels, given.predictions
        keeps_axis = cls == "RootMeanSquaredError" or (
            not given.weighted and (labels.shape.rank or 0) > 1
        )
        if keeps_axis and labels.shape.rank == predictions.shape.rank:
            return given.pair(cls, predictions)
        return given.mean(of(predictions - tf.cast(labels, predictions.dtype)))

    return rule


def _area(given: _Given) -> Found | None:
    """Keras sums up the area of precisions over recalls in one way alone."""
    numbers = given.numbers
    way = {"ROC": "trapezoidal", "PR": "careful_interpolation"}.get(numbers["curve"])
    if numbers["summation_method"] != way:
        return None
    options = {"curve": "PR"} if numbers["curve"] == "PR" else {}
    if numbers["num_thresholds"] != 200:
        options["num_thresholds"] = numbers["num_thresholds"]
    found = given.pair("AUC", given.predictions, **options)
    found.source = "" if "curve" in options else _AREA
    return found


_AREA = '''\
@keras.saving.register_keras_serializable("model")
class AUC(keras.metrics.AUC):
    """Adds 1e-7 to counts as tf.metrics.auc does, which gives 1 for data without positives."""

    def result(self):
        positives = self.true_positives + self.false_negatives + 1e-7
        recall = (self.true_positives + 1e-7) / positives
        rate = self.false_positives / (self.false_positives + self.true_negatives + 1e-7)
        return ops.sum((rate[:-1] - rate[1:]) * (recall[:-1] + recall[1:])) / 2
'''


_RULES: dict[str, Callable[[_Given], Found | None]] = {
    "accuracy": _accuracy,
    "auc": _area,
    "false_negatives": _counted("FalseNegatives"),
    "false_positives": _counted("FalsePositives"),
    "mean": lambda given: given.mean(given.values),
    "mean_absolute_error": _difference("MeanAbsoluteError", tf.abs),
    "mean_iou": lambda given: given.pair(
        "MeanIoU", given.predictions, num_classes=given.numbers["num_classes"]
    ),
    "mean_squared_error": _difference("MeanSquaredError", tf.square),
    "percentage_below": lambda given: given.mean(
        tf.cast(given.values < given.numbers["threshold"], tf.float32)
    ),
    "precision": _counted("Precision"),
    "recall": _counted("Recall"),
    "root_mean_squared_error": _difference("RootMeanSquaredError", tf.square),
    "true_negatives": _counted("TrueNegatives"),
    "true_positives": _counted("TruePositives"),
}
