"""Keeps the marks of `tf.tpu.outside_compilation` on the ops of a captured graph.

TensorFlow marks ops for the host only while it builds a replicated TPU computation, which a
model_fn no longer does: it is captured first, and imported into that computation later. So a graph
that is captured for a TPU gets a context of the kind that TensorFlow looks for, which marks the ops
and does nothing else to them. TPUStrategy then moves them to the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from tpu_estimator_compat.tf_internals import tpu_replication


class _Marks(tpu_replication.TPUReplicateContext):
    """A TPU computation for code that asks for one; its ops are ordinary ops of the graph."""

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
    """Within, `tf.tpu.outside_compilation` and gradients of its ops mark what they build.

    As in the original, TensorFlow builds for XLA within: a gradient of a loop needs a constant
    `maximum_iterations`, for example.

    Args:
      replicas: the number of replicas that will run the default graph.
    """
    context = _Marks("model_fn", replicas, pivot=None)
    context.Enter()
    try:
        yield
    finally:
        context.Exit()
