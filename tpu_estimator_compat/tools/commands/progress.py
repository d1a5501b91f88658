"""The progress of a command, on standard error."""

from __future__ import annotations

import sys
import time

_SECONDS = 30.0  # between two lines where there is no terminal


class Progress:
    """One line of a terminal, which is replaced; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""
        self._said = 0.0

    def __call__(self, what: str, how_far: str = "") -> None:
        """Says what is being done, and how far that is."""
        if self._terminal:
            print(f"\r\033[K{what}{how_far}", end="", file=sys.stderr, flush=True)
        elif what != self._last or time.monotonic() - self._said > _SECONDS:
            text = f"{what}{how_far}" if what == self._last else f"{what} …"
            self._said = time.monotonic()
            print(text, file=sys.stderr, flush=True)
        self._last = what

    def clear(self) -> None:
        """Takes the line away."""
        if self._terminal and self._last:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
