"""Runs a spec's `host_call` at every session run, for estimators that run without a TPU."""

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.spec.summary_writers_hook import SummaryWritersHook


class HostCallHook(SummaryWritersHook):
    """Fetches what the host call returned at every step; its summaries are written at the end.

    Args:
      fetches: tensors and ops, in any structure `Session.run` takes.

    Attributes:
      fetches: the same.
    """

    def __init__(self, fetches: Any) -> None:
        super().__init__()
        self.fetches = fetches

    def before_run(self, run_context: Any) -> tf.compat.v1.train.SessionRunArgs:
        """Adds the host call to this step."""
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)
