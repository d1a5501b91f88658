"""The metrics of a captured evaluation as Keras' own, by what they add to their variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.refs import resource_graph
from tpu_estimator_compat.tools.to_keras.script import Mode

_COPIES = frozenset({"Identity", "Cast", "Squeeze"})
_ADDS = ("AssignAddVariableOp", "AssignVariableOp")


@dataclasses.dataclass
class Found:
    """A metric: the constructor's text without the name, and the arguments of `update_state`."""

    made: str
    arguments: dict[str, tf.Tensor]


def find(mode: Mode) -> tuple[dict[str, Found], list[str]]:
    """By name, the metrics of an evaluation that Keras has, and notes on the others."""
    found: dict[str, Found] = {}
    notes: list[str] = []
    with mode.captured.in_graph():
        metrics = mode.captured.functions.metrics
    for name, metric in metrics.items():
        each = _of_pair(mode, *metric) if isinstance(metric, tuple) else None
        if each is None:
            notes.append(
                f"The metric {name!r} is none of Keras'. Compute it of the predictions, or write a "
                "subclass of keras.metrics.Metric."
            )
        else:
            found[name] = each
    return found, notes


def _of_pair(mode: Mode, value: Any, update: Any) -> Found | None:
    resources = resource_graph.of(mode.captured.graph)
    ops = graph_ops.ancestors([resources.operation(graph_ops.as_operation(update))], ())
    added: dict[str, tf.Tensor] = {}
    for op in ops:
        if op.type in _ADDS and op.inputs[0].op.type == "VarHandleOp":
            # Of "mean/total", total; of "precision/true_positives/count", true_positives.
            parts = op.inputs[0].op.name.removesuffix("/count").split("/")
            key = parts[-1] if parts[-1] in _KINDS_OF_VARIABLES else "count"
            added[key] = op.inputs[1]
    value = resources.tensor(value) if isinstance(value, tf.Tensor) else value
    for names, rule in _RULES.items():
        if set(added) == set(names):
            return rule(value, added)
    return None


def _uncopied(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type in _COPIES:
        tensor = tensor.op.inputs[0]
    return tensor


def _mean(value: tf.Tensor, added: dict[str, tf.Tensor]) -> Found | None:
    """Of a total of values, or of their products with weights, and a number or the weights' sum."""
    total, count = _uncopied(added["total"]).op, _uncopied(added["count"]).op
    root = _uncopied(value).op
    is_root = root.type == "Sqrt"
    divided = _uncopied(root.inputs[0]).op if is_root else root
    if total.type != "Sum" or divided.type not in ("DivNoNan", "RealDiv", "Select", "SelectV2"):
        return None
    values, weights = total.inputs[0], None
    if count.type == "Sum":
        product = values.op
        if product.type != "Mul" or _uncopied(product.inputs[1]) is not _uncopied(count.inputs[0]):
            return None
        values, weights = product.inputs[0], product.inputs[1]
    elif count.type != "Size" and tf.get_static_value(count.outputs[0]) is None:
        return None
    weighted = {} if weights is None else {"sample_weight": weights}
    compared = _uncopied(values).op
    if compared.type == "Equal" and not is_root:
        prediction, label = compared.inputs
        return Found("keras.metrics.Accuracy", {"y_true": label, "y_pred": prediction, **weighted})
    if is_root and compared.type in ("Square", "SquaredDifference"):
        pair = compared if compared.type == "SquaredDifference" else compared.inputs[0].op
        if pair.type in ("Sub", "SquaredDifference") and not weighted:
            label, prediction = pair.inputs
            arguments = {"y_true": label, "y_pred": prediction}
            return Found("keras.metrics.RootMeanSquaredError", arguments)
    return None if is_root else Found("keras.metrics.Mean", {"values": values, **weighted})


def _positives(cls: str) -> Callable[[tf.Tensor, dict[str, tf.Tensor]], Found | None]:
    """Of true positives, and false ones or false negatives."""

    def rule(value: tf.Tensor, added: dict[str, tf.Tensor]) -> Found | None:
        total = _uncopied(added["true_positives"]).op
        both = _uncopied(total.inputs[0]).op if total.type == "Sum" else total
        if both.type != "LogicalAnd" or any(t.op.type != "Equal" for t in both.inputs):
            return None
        label, prediction = (t.op.inputs[0] for t in both.inputs)
        return Found(f"keras.metrics.{cls}", {"y_true": label, "y_pred": prediction})

    return rule


_RULES = {
    ("total", "count"): _mean,
    ("true_positives", "false_positives"): _positives("Precision"),
    ("true_positives", "false_negatives"): _positives("Recall"),
}
_KINDS_OF_VARIABLES = frozenset(name for names in _RULES for name in names) | {
    "true_negatives",
    "total_confusion_matrix",
}
