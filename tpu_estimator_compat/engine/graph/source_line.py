"""A line of the user's code, as findings and reports name it; needs no TensorFlow."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class SourceLine:
    """A line of the user's code, by its 1-based number and the function that contains it.

    `code` is the text without indentation; empty where the file cannot be read.
    """

    file: str
    line: int
    function: str = ""
    code: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"
