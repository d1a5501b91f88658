"""Moves strings, such as summaries, from a TPU's device part to the host: cores have none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.step.replica_program import ReplicaProgram


def host_program(
    graph: tf.Graph, fetches: Sequence[tf.Tensor], fed: Sequence[tf.Tensor]
) -> ReplicaProgram:
    """The host's program for the device part's fetches that depend on strings.

    Its feeds are the tensors from which the strings are made; `fed` come from outside the step.
    """
    stops = {key(t) for t in fed}
    on_host = _made_of_strings(fetches, stops)
    own = [t for t in fetches if t.op in on_host]
    needed = graph_ops.ancestors([t.op for t in own], stops) & on_host
    ops = graph_ops.in_creation_order(needed)
    feeds = {key(t): t for op in ops for t in op.inputs if t.op not in on_host}
    return ReplicaProgram(graph, list(feeds.values()), own)


def left_to_replicas(fetches: Sequence[tf.Tensor], program: ReplicaProgram) -> list[tf.Tensor]:
    """The tensors that a replica returns for `fetches`, where the host runs `program`."""
    late = set(map(key, program.fetches))
    return graph_ops.distinct([*(t for t in fetches if key(t) not in late), *program.feeds])


def _made_of_strings(fetches: Sequence[tf.Tensor], stops: Collection[Key]) -> set[tf.Operation]:
    """Ops with string inputs or outputs, and all ops that depend on them."""
    ops = graph_ops.ancestors([t.op for t in fetches if key(t) not in stops], stops)
    found: set[tf.Operation] = set()
    for op in graph_ops.in_creation_order(ops):
        strings = any(t.dtype == tf.string for t in (*op.inputs, *op.outputs))
        if strings or any(t.op in found for t in op.inputs):
            found.add(op)
    return found
