"""What long work does, and for how long: one line of a terminal, and nothing elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

from tpu_estimator_compat import environment

if TYPE_CHECKING:
    from rich.progress import Progress

_QUIET = 0.5  # seconds before the line appears

_TERMINAL = threading.Lock()
"""Held by the activity that has the terminal; others, within it or in other threads, are silent."""


class Activity:
    """Shows on standard error what is done, and its time, until the end of a `with`.

    What is printed or logged meanwhile stands above the line, of which nothing is left at the end.
    If standard error is no terminal, nothing is shown.

    Example:
      with Activity("Reading files") as tell:
          tell("Reading files", ": 3 of 5")  # the time goes on, and begins anew for other work
    """

    def __init__(self, what: str = ""):
        self._bar: Progress | None = None
        self._what = what

    def __enter__(self) -> Activity:
        if environment.is_terminal(sys.stderr) and _TERMINAL.acquire(blocking=False):
            self._bar = _bar()
            self._bar.add_task(self._what)
            self._start = threading.Timer(_QUIET, _start, [self._bar])
            self._start.daemon = True
            self._start.start()
        return self

    def __call__(self, what: str, how_far: str = "") -> None:
        if self._bar is None:
            return
        [task] = self._bar.task_ids
        if what != self._what:
            self._bar.reset(task)
            self._what = what
        text = "".join(c if c.isprintable() else "?" for c in f"{what}{how_far}")
        self._bar.update(task, description=text)

    def __exit__(self, *unused_error: object) -> None:
        if self._bar is not None:
            self._start.cancel()
            self._start.join()
            shown = sys.stderr
            self._bar.stop()
            _log_to(shown, sys.stderr)
            self._bar = None
            _TERMINAL.release()


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Terminal(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Leaves the cursor as it is: a killed process would not show it again."""
            return show

    file: Any = _Start(sys.stderr)
    return Progress(
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Terminal(file=file, force_jupyter=False, soft_wrap=True),
        transient=True,
        redirect_stdout=environment.is_terminal(sys.stdout),  # else it would come to the terminal
    )


class _Start:
    """A terminal with the cursor at the start of its last line, which what C++ logs replaces."""

    def __init__(self, stream: Any):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        self._stream.write(text if text.endswith("\n") else f"{text}\r")


def _start(bar: Progress) -> None:
    plain = sys.stderr
    bar.start()
    _log_to(plain, sys.stderr)


def _log_to(old: Any, new: Any) -> None:
    """Lets handlers of logs, which keep the stream that they were made with, write to another."""
    for handler in [*logging.root.handlers, *logging.getLogger("tensorflow").handlers]:
        if isinstance(handler, logging.StreamHandler) and handler.stream is old:
            handler.setStream(new)
