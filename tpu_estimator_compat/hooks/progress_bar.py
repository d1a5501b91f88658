"""A line of progress for people who watch a terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, TextIO

import tensorflow as tf
from tensorflow.compat.v1 import logging

_SECONDS = 0.2  # between two drawings
_WIDTH = 20


def progress_bar(loss: tf.Tensor, steps: int | None, max_steps: int | None) -> list[Any]:
    """The hook that shows progress, where somebody may watch: in a list, else an empty one.

    It is for a terminal that nothing else is written to: not where standard error goes elsewhere,
    not where the log is set to show more than warnings, or less, and not in tests.

    Args:
      loss: the step's loss.
      steps: how many steps to make, or
      max_steps: the global step to reach; None for both where nobody knows.
    """
    quiet = logging.get_verbosity() == logging.WARN and "PYTEST_CURRENT_TEST" not in os.environ
    if not quiet or not sys.stderr.isatty() or (steps is None and max_steps is None):
        return []
    return [ProgressBarHook(loss, steps, max_steps, sys.stderr)]


class ProgressBarHook(tf.compat.v1.train.SessionRunHook):
    """Draws when others give it the opportunity, which is once a second at least."""

    def __init__(self, loss: tf.Tensor, steps: int | None, max_steps: int | None, stream: TextIO):
        self._loss = loss
        self._steps = steps
        self._last = max_steps
        self._stream = stream
        self._shown = ""
        self._drawn = 0.0

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        self._first = session.global_step()
        if self._steps is not None:
            self._last = self._first + self._steps
        self._started = time.monotonic()

    def before_run(self, run_context: Any) -> Any:
        del run_context
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        step = run_context.session.global_step()
        now = time.monotonic()
        if now - self._drawn >= _SECONDS or step >= (self._last or 0):
            self._drawn = now
            self._draw(step, float(run_values.results), now - self._started)

    def _draw(self, step: int, loss: float, seconds: float) -> None:
        last = self._last or step
        full = min(_WIDTH, _WIDTH * step // max(1, last))
        bar = "#" * full + "." * (_WIDTH - full)
        speed = (step - self._first) / max(seconds, 1e-3)
        text = f"step {step}/{last} [{bar}] loss {loss:.4g}, {speed:.4g} steps/s"
        self._stream.write("\r" + text.ljust(len(self._shown)))
        self._stream.flush()
        self._shown = text

    def end(self, session: Any) -> None:
        del session
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
