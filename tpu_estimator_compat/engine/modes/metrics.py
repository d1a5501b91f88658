"""Evaluation metrics of a spec as `(value, update_op)` pairs of the captured graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph.graph_ops import as_operation
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.state.variables import components
from tpu_estimator_compat.spec import is_keras_metric, keras_metric_pair

GraphKeys = tf.compat.v1.GraphKeys
LOSS = "loss"
_SUMMED = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.SUM
Pairs = dict[str, tuple[tf.Tensor, tf.Operation]]


def metric_pairs(captured: CapturedMode) -> Pairs:
    """The metrics of an EVAL mode and the mean loss, by name; called in `captured.in_graph()`.

    Metrics of a TPUEstimatorSpec are built on tensors concatenated over the replicas; metrics of an
    EstimatorSpec come from model_fn. A pair is a value, and an update that adds one step.
    """
    found = {name: pair(name, metric) for name, metric in captured.functions.metrics.items()}
    for reserved, quoted in ((LOSS, '"loss"'), (GraphKeys.GLOBAL_STEP, "`global_step`")):
        if reserved in found:
            raise ValueError(
                f"Metric with name {quoted} is not allowed, because Estimator already defines a "
                "default metric with the same name."
            )
    loss = captured.spec.loss
    if captured.topology.tpu_semantics:
        loss = captured.functions.host.over_replicas(tf.reshape(loss, [1]))
    value, update = tf.compat.v1.metrics.mean(loss)
    return {**found, LOSS: (value, update.op)}


def pair(name: str, metric: Any) -> tuple[tf.Tensor, tf.Operation]:
    """A metric of a spec, perhaps a Keras metric, as `(value, update_op)`."""
    if is_keras_metric(metric):
        metric = keras_metric_pair(metric)
    if not isinstance(metric, tuple) or len(metric) != 2:
        raise TypeError(
            "Values of eval_metric_ops must be (metric_value, update_op) tuples, given: "
            f"{metric} for key: {name}"
        )
    value, update = metric
    return value, as_operation(update)


def sum_over_replicas(captured: CapturedMode) -> None:
    """Adds up metric variables of several replicas in the first replica's, as the original did.

    Metrics of model_fn have one variable per replica; metrics of a metric_fn see all replicas.
    """
    local = captured.graph.get_collection(GraphKeys.LOCAL_VARIABLES)
    summed = captured.graph.get_collection(GraphKeys.METRIC_VARIABLES)
    summed += [v for v in local if (v.synchronization, v.aggregation) == _SUMMED]
    with eager.eager_mode():
        for name in dict.fromkeys(v.op.name for v in summed if v.op.name in captured.store):
            first, *others = components(captured.store[name])
            for other in others:
                first.assign_add(other.read_value())
                other.assign(tf.zeros_like(other))
            if group := captured.topology.workers:
                first.assign(group.sum_over_workers(first.read_value(), f"metric {name}"))
