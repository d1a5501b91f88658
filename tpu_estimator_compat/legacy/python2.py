"""Sources that are Python 2: a syntax error that says so."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

_SIGNS = [
    (re.compile(r"^\s*print\s+[^(=\s]"), "`print x` is `print(x)` now"),
    (re.compile(r"^\s*print\s*>>"), "`print >>f, x` is `print(x, file=f)` now"),
    (re.compile(r"\bexcept\s+[\w.]+\s*,\s*\w+\s*:"), "`except E, e:` is `except E as e:` now"),
    (re.compile(r"^\s*raise\s+[\w.]+\s*,"), '`raise E, "..."` is `raise E("...")` now'),
    (re.compile(r"^\s*exec\s+[\"'\w]"), "`exec code` is `exec(code)` now"),
    (re.compile(r"\b0[0-7]+\b|\b\d+[lL]\b"), "`010` is `0o10`, and `10L` is `10` now"),
    (re.compile(r"<>"), "`a <> b` is `a != b` now"),
    (re.compile(r"`[^`]+`"), "`` `x` `` is `repr(x)` now"),
    (re.compile(r"\bur[\"']"), '`ur"..."` is `r"..."` now'),
    (re.compile(r"\b(def\s+\w+|lambda)\s*\(?[^)]*\([\w, ]+\)"), "parameters cannot be tuples now"),
]
_WAY_OUT = (
    "This looks like Python 2. Convert it once, for example with `2to3 -w FILE` (it comes with "
    "Python up to 3.12) or `pip install fissix && fissix -w FILE`."
)


@contextlib.contextmanager
def explained(source: bytes | str, path: str) -> Iterator[None]:
    """Adds to a syntax error within what to do, if the line is Python 2."""
    try:
        yield
    except SyntaxError as error:
        advice = sign(error, source)
        if advice is not None:
            error.filename = error.filename or path
            error.add_note(advice)
        raise


def sign(error: SyntaxError, source: bytes | str) -> str | None:
    """What to do about a syntax error, if its line is Python 2; None if it is not.

    Args:
      error: as `ast.parse` or `compile` raised it.
      source: of the whole module.
    """
    text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    lines = text.splitlines()
    number = error.lineno or 0
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if isinstance(error, TabError):
        return f"{_WAY_OUT} Tabs and spaces may not be mixed now."
    for pattern, today in _SIGNS:
        if pattern.search(line):
            return f"{_WAY_OUT} Line {number}: {today}."
    return None
