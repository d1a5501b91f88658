"""Looks in a captured graph for operations that explain what a check has measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.graph.graph_ops import ancestors, as_operation
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.testing.results import Result
from tpu_estimator_compat.tf_internals import smart_cond

_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "All", "Any"})
_BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def needed(roots: Iterable[Any]) -> list[tf.Operation]:
    """The operations that tensors or operations depend on, in the order of the graph."""
    found = ancestors([as_operation(root) for root in roots if root is not None], ())
    return sorted(found, key=lambda op: op._id)


def one_per_line(ops: Iterable[tf.Operation]) -> list[tf.Operation]:
    """The first of the operations that each line of the user made."""
    found: dict[Any, tf.Operation] = {}
    for op in ops:
        found.setdefault(sources.of_operation(op) or op.name, op)
    return list(found.values())


def of_loss(result: Result) -> list[tf.Operation]:
    return needed([result.spec.loss])


def of_predictions(result: Result) -> list[tf.Operation]:
    return needed(tf.nest.flatten(result.spec.predictions))


def draws_random_numbers(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Random operations, but not initialisers, which a step does not run."""
    return one_per_line(
        op for op in ops if "seed2" in op.node_def.attr or op.type.startswith("StatelessRandom")
    )


def uses_batch_statistics(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Batch normalizations in training mode: fused ones, and moments over the examples."""
    fused = [op for op in ops if op.type in _BATCH_NORMS and op.get_attr("is_training")]
    moments = [
        op for op in ops if op.type == "Mean" and "moments" in op.name and mixes_examples(op)
    ]
    return one_per_line(sorted([*fused, *moments], key=lambda op: op._id))


def in_inference_mode(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Fused batch normalizations that use their moving averages."""
    return one_per_line(
        op for op in ops if op.type in _BATCH_NORMS and not op.get_attr("is_training")
    )


def mixes_examples(op: tf.Operation) -> bool:
    """Whether an operation reduces over axis 0, and perhaps others."""
    if op.type not in _REDUCTIONS or op.inputs[0].shape.rank in (None, 0):
        return False
    axes = smart_cond.smart_constant_value(op.inputs[1])
    return axes is None or 0 in np.mod(np.atleast_1d(axes), op.inputs[0].shape.rank)


def clips_before_sum(graph: tf.Graph) -> list[tf.Operation]:
    """Operations that clip gradients of one replica, which are then added up over replicas."""
    sums = [op for op in graph.get_operations() if op.type in collectives.SUMS]
    return one_per_line(op for op in needed(sums) if _clips(op))


def _clips(op: tf.Operation) -> bool:
    made_by = op.name.split("/")
    return op.type == "ClipByValue" or any(part.startswith("clip_by_") for part in made_by)


def handle_of(graph: tf.Graph, name: str) -> tf.Operation | None:
    """The operation that makes a variable; None where the graph has no such."""
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def mixing(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Operations that reduce over the examples, batch normalizations among them."""
    found = {op._id: op for op in uses_batch_statistics(ops)}
    batches = {t.shape[0] for op in ops if op.type == "IteratorGetNext" for t in op.outputs}
    for op in ops:
        if mixes_examples(op) and (op.inputs[0].shape[0] in batches or not batches):
            found[op._id] = op
    return one_per_line(found[number] for number in sorted(found))
