"""Speed of training as log lines and event-file scalars, in the words of the original."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.core.framework import summary_pb2


class ExamplesPerSecondHook(tf.compat.v1.train.StepCounterHook):
    """Logs and records `global_step/sec` and, where `batch_size` is known, `examples/sec`."""

    def __init__(
        self,
        batch_size: int | None,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
    ):
        self._batch_size = batch_size
        super().__init__(
            every_n_steps=every_n_steps, every_n_secs=every_n_secs, output_dir=output_dir
        )

    def _log_and_record(self, elapsed_steps, elapsed_time, global_step):
        steps_per_second = elapsed_steps / elapsed_time
        self._record("global_step/sec", steps_per_second, global_step)
        if self._batch_size:
            self._record("examples/sec", steps_per_second * self._batch_size, global_step)

    def _record(self, tag: str, value: float, global_step: int) -> None:
        logging.info("%s: %g", tag, value)
        if self._summary_writer is not None:
            scalar = summary_pb2.Summary.Value(tag=tag, simple_value=value)
            self._summary_writer.add_summary(summary_pb2.Summary(value=[scalar]), global_step)
