"""Hooks that specs add: they open and flush summary writers, and run the host call."""

from typing import Any

import tensorflow as tf

# The initializers of summary writers have no public access since TF2.
from tpu_estimator_compat.tf_internals import summary_ops_v2


class SummaryWritersHook(tf.compat.v1.train.SessionRunHook):
    """Opens all `tf.summary` writers of the graph, and flushes them at the end of the session."""

    def __init__(self) -> None:
        self._initializers: list[tf.Operation] = []
        self._flushes: list[tf.Operation] = []

    def begin(self) -> None:
        self._initializers = list(summary_ops_v2.summary_writer_initializer_op())
        self._flushes = [
            summary_ops_v2.legacy_raw_flush(writer=op.inputs[0]) for op in self._initializers
        ]

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        session.run(self._initializers)

    def end(self, session: Any) -> None:
        session.run(self._flushes)


class HostCallHook(SummaryWritersHook):
    """Fetches the host call's results in every run, except with `use_tpu=True`."""

    def __init__(self, fetches: Any) -> None:
        super().__init__()
        self.fetches = fetches

    def before_run(self, run_context: Any) -> tf.compat.v1.train.SessionRunArgs:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)
