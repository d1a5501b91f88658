"""Makes file names and lines of user code safe to show in a report."""

from __future__ import annotations

import os
import sys

from tpu_estimator_compat.engine.graph.source_line import SourceLine


def place(source: SourceLine) -> str:
    """File and line; a file below the working directory or the home is shown relative to it."""
    return f"{printable(_short(source.file))}:{source.line}"


def printable(text: str) -> str:
    """One line of text without control characters, which could steer a terminal.

    >>> printable("a\\tb\\x1b[31m")
    'a b?[31m'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def say(line: str, *, error: bool = False) -> None:
    """Prints one line, which may have untrusted names, to standard output or error."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # which `print` takes for standard output
        print(printable(line), file=stream, flush=error)


def _short(file: str) -> str:
    for folder, prefix in ((os.getcwd(), ""), (os.path.expanduser("~"), "~" + os.sep)):
        below = folder.rstrip(os.sep) + os.sep
        # Everything is below the root: an absolute path says more there.
        if len(below) > 1 and file.startswith(below):
            return prefix + file.removeprefix(below)
    return file
