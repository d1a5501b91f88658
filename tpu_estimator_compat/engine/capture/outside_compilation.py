"""Keeps the marks of `tf.tpu.outside_compilation` on ops of a captured graph.

TensorFlow marks ops for the host, but only while it builds a replicated TPU computation. A model_fn
is captured first, and imported into that computation later. So a graph for a TPU is captured in a
context of the class that TensorFlow looks for, which marks ops; TPUStrategy moves the marked ops.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tpu_estimator_compat.tf_internals import tpu_replication


class _Marks(tpu_replication.TPUReplicateContext):
    """A TPU computation that leaves its ops in the graph, and marks them."""

    def AddOp(self, op: tf.Operation) -> None:
        if self._outside_compilation_cluster:
            cluster = self._outside_compilation_cluster.encode()
            op._set_attr(tpu_replication._OUTSIDE_COMPILATION_ATTR, AttrValue(s=cluster))
        if self._is_map_outside_compilation:
            op._set_attr(tpu_replication._MAP_OUTSIDE_COMPILATION_ATTR, AttrValue(b=True))

    def AddValue(self, val: tf.Tensor) -> tf.Tensor:
        return val


@contextlib.contextmanager
def marked(replicas: int) -> Iterator[None]:
    """A context in which `tf.tpu.outside_compilation`, and gradients of its ops, mark ops.

    As in the original, TensorFlow builds for XLA here: a loop's gradient needs a constant
    `maximum_iterations`, for example.
    """
    context = _Marks("model_fn", replicas, pivot=None)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()
