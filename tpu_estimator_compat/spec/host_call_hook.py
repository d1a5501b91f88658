"""The hook that runs a spec's `host_call` at every session run, except with `use_tpu=True`."""

from typing import Any

import tensorflow as tf

from tpu_estimator_compat.spec.summary_writers_hook import SummaryWritersHook


class HostCallHook(SummaryWritersHook):
    """Fetches the host call's results in every run, and flushes their summaries at the end."""

    def __init__(self, fetches: Any) -> None:
        super().__init__()
        self.fetches = fetches

    def before_run(self, run_context: Any) -> tf.compat.v1.train.SessionRunArgs:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self.fetches)
