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
    """A metric of Keras, the arguments of its `update_state`, and of its constructor."""

    cls: str
    arguments: dict[str, tf.Tensor]
    options: str = ""


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
    values, weighted = total.inputs[0], {}
    if count.type == "Sum":
        product = values.op
        if product.type != "Mul" or _uncopied(product.inputs[1]) is not _uncopied(count.inputs[0]):
            return None
        values, weighted = product.inputs[0], _weighted(product.inputs[1])
    elif count.type != "Size":
        return None
    mean = Found("keras.metrics.Mean", {"values": values, **weighted})
    computed = _uncopied(values).op
    cls = _MEANS.get((computed.type, is_root))
    if computed.type == "Abs":
        computed = computed.inputs[0].op
    if cls is None or (weighted and cls != "Accuracy") or len(computed.inputs) != 2:
        return None if is_root else mean
    prediction, label = (t.op.inputs[0] if t.op.type == "Cast" else t for t in computed.inputs)
    if computed.type == "SquaredDifference":
        prediction, label = label, prediction
    if prediction.shape.rank != label.shape.rank:
        return None if is_root else mean
    return Found(f"keras.metrics.{cls}", {"y_true": label, "y_pred": prediction, **weighted})


_MEANS = {
    ("Equal", False): "Accuracy",
    ("Abs", False): "MeanAbsoluteError",
    ("SquaredDifference", False): "MeanSquaredError",
    ("SquaredDifference", True): "RootMeanSquaredError",
}
"""The metric by the operation of which it is the mean, or the root of the mean."""


def _weighted(weights: tf.Tensor) -> dict[str, tf.Tensor]:
    """The weights as an argument, before they are broadcast; none where all are 1."""
    weights = _uncopied(weights)
    while weights.op.type == "Mul" and (ones := [t for t in weights.op.inputs if _is_one(t)]):
        weights = _uncopied(next((t for t in weights.op.inputs if t is not ones[0]), ones[0]))
    return {} if _is_one(weights) else {"sample_weight": weights}


def _is_one(tensor: tf.Tensor) -> bool:
    op = _uncopied(tensor).op
    value = tf.get_static_value(op.inputs[1] if op.type == "Fill" else op.outputs[0])
    return op.type == "OnesLike" or (value is not None and bool((value == 1).all()))


def _counts(cls: str) -> Callable[[tf.Tensor, dict[str, tf.Tensor]], Found | None]:
    """Of true positives, and false ones or false negatives."""

    def rule(value: tf.Tensor, added: dict[str, tf.Tensor]) -> Found | None:
        found = _conditions(added["true_positives"])
        if found is None or any(t.op.type != "Equal" for t in found[0]):
            return None
        label, prediction = (t.op.inputs[0] for t in found[0])
        return Found(f"keras.metrics.{cls}", {"y_true": label, "y_pred": prediction, **found[1]})

    return rule


def _conditions(tensor: tf.Tensor) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]] | None:
    """The two conditions of which `tensor` counts where both are true, and the weights."""
    summed = _uncopied(tensor).op
    both = _uncopied(summed.inputs[0]).op if summed.type == "Sum" else summed
    weighted: dict[str, tf.Tensor] = {}
    if both.type == "Mul":
        weighted = _weighted(_made_of(both.inputs[1]))
        both = _uncopied(both.inputs[0]).op
    return (list(both.inputs), weighted) if both.type == "LogicalAnd" else None


def _area(value: tf.Tensor, added: dict[str, tf.Tensor]) -> Found | None:
    """The area under a curve, where Keras sums it up alike."""
    found = _conditions(added["true_positives"])
    thresholds = added["true_positives"].shape.as_list()
    behind = graph_ops.ancestors([value.op], ())
    names = {op.inputs[0].op.name for op in behind if op.type == "ReadVariableOp"}
    is_roc = any("true_negatives" in name for name in names)
    if found is None or not (is_roc or "interpolate_pr_auc" in value.op.name) or found[1]:
        return None
    label, positive = (_made_of(t) for t in found[0])
    if positive.op.type != "Greater" or len(thresholds) != 1:
        return None
    arguments = {"y_true": label, "y_pred": _made_of(positive.op.inputs[0])}
    options = [] if thresholds == [200] else [f"num_thresholds={thresholds[0]}"]
    options += [] if is_roc else ['curve="PR"']
    return Found("keras.metrics.AUC", arguments, ", ".join(options))


def _made_of(tensor: tf.Tensor) -> tf.Tensor:
    """Before it was repeated for each threshold."""
    while tensor.op.type in (*_COPIES, "Reshape", "Tile", "Transpose"):
        tensor = tensor.op.inputs[0]
    return tensor


_RULES = {
    ("total", "count"): _mean,
    ("true_positives", "false_positives"): _counts("Precision"),
    ("true_positives", "false_negatives"): _counts("Recall"),
    ("true_positives", "false_negatives", "true_negatives", "false_positives"): _area,
}
_KINDS_OF_VARIABLES = frozenset(name for names in _RULES for name in names)
