"""A progress line in a terminal or notebook."""

from __future__ import annotations

import importlib
import math
import os
import sys
import time
from typing import Any, Protocol, TextIO

import tensorflow as tf
from tensorflow.compat.v1 import logging

_SECONDS = 0.2  # between two drawings
_WIDTH = 20


class _Line(Protocol):
    def show(self, text: str) -> None: ...
    def close(self) -> None: ...


def progress_bar(loss: tf.Tensor, steps: float | None, max_steps: float | None) -> list[Any]:
    """A list with the hook that shows progress; empty where the progress line is off.

    The line is on in terminals at the log level WARN, and in notebooks, where it has its own
    output, at INFO and WARN. It is off where standard error is redirected, and under pytest.
    """
    level = logging.get_verbosity()
    line: _Line
    if _is_notebook() and level in (logging.INFO, logging.WARN):  # INFO is the default there
        line = _CellOutput()
    elif sys.stderr.isatty() and level == logging.WARN:
        line = _TerminalLine(sys.stderr)
    else:
        return []
    if "PYTEST_CURRENT_TEST" in os.environ:
        return []
    return [ProgressBarHook(loss, _whole(steps), _whole(max_steps), line)]


def _whole(steps: float | None) -> int | None:
    """The first integer at or beyond a limit; None without a limit."""
    return None if steps is None or steps == math.inf else math.ceil(steps)


def _is_notebook() -> bool:
    """Whether output appears below a cell, in Jupyter or Colab."""
    return type(sys.stdout).__module__.partition(".")[0] == "ipykernel"


class _TerminalLine:
    def __init__(self, stream: TextIO):
        self._stream = stream
        self._shown = ""

    def show(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(len(self._shown)))
        self._stream.flush()
        self._shown = text

    def close(self) -> None:
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()


class _CellOutput:
    """An output of the running cell, apart from printed text."""

    def __init__(self) -> None:
        self._output: Any = None

    def show(self, text: str) -> None:
        content = {"text/plain": text}
        if self._output is None:
            display = importlib.import_module("IPython.display").display
            self._output = display(content, raw=True, display_id=True)
        else:
            self._output.update(content, raw=True)

    def close(self) -> None:
        pass


class ProgressBarHook(tf.compat.v1.train.SessionRunHook):
    """Redraws at most every 0.2 s; the loop returns to Python at least once a second."""

    def __init__(self, loss: tf.Tensor, steps: int | None, max_steps: int | None, line: _Line):
        self._loss = loss
        self._steps = steps
        self._last = max_steps
        self._line = line
        self._drawn = 0.0
        self._latest: tuple[int, Any] | None = None  # a step not yet drawn, with its loss

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
        self._latest = run_context.session.global_step(), run_values.results
        if time.monotonic() - self._drawn >= _SECONDS:
            self._draw(*self._latest)

    def _draw(self, step: int, loss: Any) -> None:
        self._latest = None
        self._drawn = time.monotonic()
        done = f"{step}"
        if self._last is not None:
            full = min(_WIDTH, _WIDTH * step // max(1, self._last))
            done = f"{step}/{self._last} [{'#' * full}{'.' * (_WIDTH - full)}]"
        speed = (step - self._first) / max(self._drawn - self._started, 1e-3)
        self._line.show(f"step {done} loss {float(loss):.4g}, {speed:.4g} steps/s")

    def end(self, session: Any) -> None:
        del session
        if self._latest is not None:
            self._draw(*self._latest)
        self._line.close()
