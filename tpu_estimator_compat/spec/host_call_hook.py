"""The hook that runs a spec's `host_call` at every session run, where there is no TPU."""

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.spec.summary_writers_hook import SummaryWritersHook


class HostCallHook(SummaryWritersHook):
    """Fetches the host call's results at every step; their summaries are written at the end."""

    def __init__(self, fetches: Any) -> None:
        super().__init__()
        self.fetches = fetches

    def before_run(self, run_context: Any) -> tf.compat.v1.train.SessionRunArgs:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)
