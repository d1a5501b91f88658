"""Runs a spec's `host_call` at every session run, for estimators that run without a TPU."""

from typing import Any

import tensorflow as tf

# The initializers of summary writers have no public access since TF2.
from tpu_estimator_compat.tf_internals import summary_ops_v2


class HostCallHook(tf.compat.v1.train.SessionRunHook):
    """Fetches what the host call returned at every step, and flushes its summaries at the end.

    Args:
      fetches: tensors and ops, in any structure `Session.run` takes.

    Attributes:
      fetches: the same.
    """

    def __init__(self, fetches: Any) -> None:
        self.fetches = fetches
        self._initializers: list[tf.Operation] = []
        self._flushes: list[tf.Operation] = []

    def begin(self) -> None:
        """Builds the flushes of all summary writers, while the graph can still be changed."""
        self._initializers = list(summary_ops_v2.summary_writer_initializer_op())
        self._flushes = [
            summary_ops_v2.legacy_raw_flush(writer=op.inputs[0]) for op in self._initializers
        ]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the summary writers."""
        del coord
        session.run(self._initializers)

    def before_run(self, run_context: Any) -> tf.compat.v1.train.SessionRunArgs:
        """Adds the host call to this step."""
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)

    def end(self, session: Any) -> None:
        """Writes out the summaries."""
        session.run(self._flushes)
