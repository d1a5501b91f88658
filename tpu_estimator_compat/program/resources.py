"""Makes the host resources of a captured graph: hash tables, iterators, writers, queues."""

from __future__ import annotations

import contextlib

import tensorflow as tf

from tpu_estimator_compat.program.replica_program import HandleOf, ReplicaProgram
from tpu_estimator_compat.runtime import functions


class Resource:
    """A resource of a captured graph, made once.

    Attributes:
      handle: its handle; whatever it depends on lives as long as this object.
      is_summary_writer: whether it writes events.

    Args:
      op: the op that makes it.
      handle_of: handles of what it may depend on.
    """

    def __init__(self, op: tf.Operation, handle_of: HandleOf):
        self.is_summary_writer = op.type == "SummaryWriter"
        program = ReplicaProgram.creating(op)
        # A resource without a shared name dies with the function whose kernel made it.
        self._keep = functions.function(lambda: program([], handle_of)[0])
        self.handle = self._keep()

    def flush(self) -> None:
        """Has a summary writer write what waits; nothing where nobody has opened it."""
        with contextlib.suppress(tf.errors.NotFoundError):
            tf.raw_ops.FlushSummaryWriter(writer=self.handle)
