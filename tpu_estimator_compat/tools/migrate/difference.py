"""The changes of a migration, as a unified diff."""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterator

from tpu_estimator_compat.tools.reports.terminal import styled

_STYLES = {"--- ": "bold", "+++ ": "bold", "-": "red", "+": "green", "@@": "cyan"}
_NO_NEWLINE = "\\ No newline at end of file\n"


def unified(before: str, after: str, file: str, color: bool = False) -> str:
    """The diff, which `patch` and `git apply` accept if it has no color."""
    old, new = (io.StringIO(text, newline="").readlines() for text in (before, after))
    name = file.removeprefix("./").lstrip("/")
    lines = _lines(list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")))
    return "".join(map(_colored, lines) if color else lines)


def _lines(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line.endswith("\n"):
            yield line
        else:
            yield f"{line}\n"
            yield _NO_NEWLINE


def _colored(line: str) -> str:
    for sign, style in _STYLES.items():
        if line.startswith(sign):
            return styled(line[:-1], style) + "\n"
    return line
