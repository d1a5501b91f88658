"""The changes of a migration, as a unified diff."""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Iterable, Iterator

from tpu_estimator_compat.tools.reports.sources import printable
from tpu_estimator_compat.tools.reports.terminal import styled

_STYLES = {"--- ": "bold", "+++ ": "bold", "-": "red", "+": "green", "@@": "cyan"}
_NO_NEWLINE = "\\ No newline at end of file\n"


def lines(before: str, after: str, file: str) -> list[str]:
    """The lines of the diff, which `patch` and `git apply` accept."""
    old, new = (io.StringIO(text, newline="").readlines() for text in (before, after))
    name = file.removeprefix("./").lstrip("/")
    names = _quoted(f"a/{name}"), _quoted(f"b/{name}")
    return list(_ended(difflib.unified_diff(old, new, *names)))


def shown(difference: Iterable[str], *, color: bool, terminal: bool) -> str:
    """The diff as text; for a terminal, without characters that could steer it."""
    safe = [printable(line[:-1]) + "\n" for line in difference] if terminal else difference
    return "".join(map(_colored, safe) if color else safe)


def _quoted(name: str) -> str:
    if name.isprintable() and not any(sign in name for sign in '"\\'):
        return name
    signs = (
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in os.fsencode(name)
    )
    return f'"{"".join(signs)}"'


def _ended(lines: Iterable[str]) -> Iterator[str]:
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
