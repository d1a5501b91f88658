"""Keeps the working directory out of `sys.path` in `python -m tpu_estimator_compat COMMAND`.

Python puts the working directory first in `sys.path`. A file there, such as `random.py`, then
replaces the standard module of the same name. Commands that only read a source tree must import
nothing from it, so the package calls this module before its other imports. `run` puts the script's
folder in its place, as Python does.
"""

import os
import sys

_left: list[str] = []


def leave_working_directory() -> None:
    """Removes the working directory from `sys.path`."""
    if _is_command() and sys.path[:1] == [os.getcwd()]:
        _left.append(sys.path.pop(0))


def return_working_directory() -> None:
    """Appends the working directory to `sys.path`, before a command runs the user's code."""
    while _left:
        sys.path.append(_left.pop())


def _is_command() -> bool:
    """Whether Python is locating this package's `__main__`; until it has, sys.argv[0] is "-m"."""
    asked = sys.orig_argv[-len(sys.argv)] if sys.argv[:1] == ["-m"] else ""
    return asked.removeprefix("-m") == __package__ and not sys.flags.safe_path
