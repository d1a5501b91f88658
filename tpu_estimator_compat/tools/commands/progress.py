"""The progress of a command, on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from tpu_estimator_compat import environment
from tpu_estimator_compat.tools.reports.sources import printable, say

if TYPE_CHECKING:
    from rich.live import Live

_SECONDS = 30.0  # between two lines where there is no terminal


class Progress:
    """Updates one line of a terminal; elsewhere prints a line per activity, and every 30 s."""

    def __init__(self) -> None:
        self._live = _live() if environment.is_terminal(sys.stderr) else None
        self._last = ""
        self._said = 0.0

    def __call__(self, what: str, how_far: str = "") -> None:
        what = printable(what)
        if self._live is not None:
            from rich.spinner import Spinner
            from rich.text import Text

            self._live.start()
            self._live.update(Spinner("line", Text(f"{what}{how_far}")))
        elif what != self._last or time.monotonic() - self._said > _SECONDS:
            text = f"{what}{how_far}" if what == self._last else f"{what} …"
            self._said = time.monotonic()
            say(text, error=True)
        self._last = what

    def clear(self) -> None:
        if self._live is not None:
            self._live.stop()


def _live() -> Live:
    from rich.console import Console
    from rich.live import Live

    # rich must not redirect the output of a script that runs meanwhile.
    return Live(
        console=Console(stderr=True, force_jupyter=False),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
