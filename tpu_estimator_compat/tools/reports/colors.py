"""Colors of texts in a terminal. They never say more than the words."""

from __future__ import annotations

import enum
import os
import sys


class Color(enum.StrEnum):
    """Codes of ANSI terminals."""

    BOLD = "1"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    CYAN = "36"


def are_shown() -> bool:
    """Whether standard output is a terminal, and the user has not set NO_COLOR."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def painted(text: str, color: str, *, on: bool = True) -> str:
    """The text in a color; as it is where `on` is false or `color` is empty.

    >>> painted("fits", Color.GREEN)
    '\\x1b[32mfits\\x1b[0m'
    >>> painted("fits", Color.GREEN, on=False)
    'fits'
    """
    return f"\x1b[{color}m{text}\x1b[0m" if on and color else text
