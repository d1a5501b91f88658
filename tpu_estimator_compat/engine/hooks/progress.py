"""Progress of training: the original's log lines and events of its speed, and Keras' bar."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compat.v1 import logging
from tensorflow.core.framework import summary_pb2

from tpu_estimator_compat import environment


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


def progress_bar(loss: tf.Tensor, steps: float | None, max_steps: float | None) -> list[Any]:
    """A list with the hook that shows progress; empty where nobody would see it.

    The bar is on in terminals at the log level WARN, and in notebooks at INFO, the default there,
    and WARN. It is off where standard output is redirected, and under pytest.
    """
    level = logging.get_verbosity()
    in_notebook = type(sys.stdout).__module__.partition(".")[0] == "ipykernel"
    levels = (logging.INFO, logging.WARN) if in_notebook else (logging.WARN,)
    is_seen = in_notebook or environment.is_terminal(sys.stdout)
    if not is_seen or level not in levels or "PYTEST_CURRENT_TEST" in os.environ:
        return []
    return [ProgressBarHook(loss, steps, max_steps)]


class ProgressBarHook(tf.compat.v1.train.SessionRunHook):
    """Shows the steps of this call; the loop returns to Python at least once a second."""

    def __init__(self, loss: tf.Tensor, steps: float | None, max_steps: float | None):
        self._loss = loss
        self._steps = steps
        self._max_steps = max_steps

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self._first = self._done = session.global_step()
        steps = self._steps
        if steps is None and self._max_steps is not None:
            steps = self._max_steps - self._first
        whole = None if steps is None or steps == math.inf else math.ceil(steps)
        self._bar = keras.utils.Progbar(whole, interval=0.2, stateful_metrics=["loss"])

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._done = run_context.session.global_step()
        loss = float(run_values.results)
        self._bar.update(self._done - self._first, [("loss", loss)], finalize=False)

    def end(self, session: Any) -> None:
        del session
        self._bar.update(self._done - self._first, finalize=True)
