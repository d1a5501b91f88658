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

_REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "All", "Any")
_AXIS_OF = {
    **dict.fromkeys((*_REDUCTIONS, "ArgMax", "ArgMin", "Cumprod", "Cumsum", "ReverseV2"), 1),
    "Roll": 2,
}
"""The index of the input that holds the axis."""

_SOFTMAXES = frozenset({"Softmax", "LogSoftmax"})
"""Operations along the last axis: for another one, TensorFlow transposes their input."""

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


def local_variables(result: Result) -> list[tf.Operation]:
    """The operations that make the local variables which a training step needs."""
    made = [v.op for v in result.graph.get_collection(tf.compat.v1.GraphKeys.LOCAL_VARIABLES)]
    step = set(needed([result.spec.train_op]))
    return [op for op in made if op in step]


def rounds_coarsely(ops: Sequence[tf.Operation]) -> bool:
    """Whether values of bfloat16 or half are among what operations compute."""
    return any(t.dtype.base_dtype in (tf.bfloat16, tf.half) for op in ops for t in op.outputs)


def draws_random_numbers(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Random operations, but not initializers, which a step does not run."""
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
    """Batch normalizations that use their moving averages, and not the batch's moments."""
    fused = [op for op in ops if op.type in _BATCH_NORMS and not op.get_attr("is_training")]
    moments = tuple(op.name for op in ops if op.type == "Mean" and "moments" in op.name)
    averages = [
        op
        for op in ops
        for scope, _, name in [op.name.rpartition("/")]
        if name == "moving_mean" and not any(mean.startswith(f"{scope}/") for mean in moments)
    ]
    return one_per_line(sorted([*fused, *averages], key=lambda op: op._id))


def mixes_examples(op: tf.Operation) -> bool:
    """Whether an operation reduces, shifts, counts or compares along axis 0."""
    if op.type not in _AXIS_OF or not (rank := op.inputs[0].shape.rank):
        return False
    axes = smart_cond.smart_constant_value(op.inputs[_AXIS_OF[op.type]])
    return axes is None or 0 in np.mod(np.atleast_1d(axes), rank)


def clips_before_sum(graph: tf.Graph) -> list[tf.Operation]:
    """Operations that clip gradients of one replica, which are then added up over replicas."""
    sums = [op for op in graph.get_operations() if op.type in collectives.SUMS]
    return one_per_line(op for op in needed(sums) if _clips(op))


def _clips(op: tf.Operation) -> bool:
    made_by = op.name.split("/")
    return op.type == "ClipByValue" or any(part.startswith("clip_by_") for part in made_by)


def handle_of(graph: tf.Graph, name: str) -> tf.Operation | None:
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def mixing(ops: Sequence[tf.Operation], examples: int) -> list[tf.Operation]:
    """Operations that look along the axis of the examples, batch normalizations among them."""
    found = {op._id: op for op in uses_batch_statistics(ops)}
    for op in ops:
        if mixes_examples(op) and _has_examples(op.inputs[0], examples):
            found[op._id] = op
        if op.type in _SOFTMAXES and _has_examples_last(op.inputs[0], examples):
            found[op._id] = op
    return one_per_line(found[number] for number in sorted(found))


def _has_examples(tensor: tf.Tensor, examples: int) -> bool:
    return tf.compat.dimension_value(tensor.shape[0]) in (examples, None)


def _has_examples_last(tensor: tf.Tensor, examples: int) -> bool:
    return tensor.op.type == "Transpose" and tensor.shape[-1:] == [examples]
