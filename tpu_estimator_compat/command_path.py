"""The path of imports of `python -m tpu_estimator_compat COMMAND`, which begins with this module.

Python puts the working directory first, so that a file there hides a module of Python's own. Of a
tree that is only read, nothing may be imported: its folder leaves the path before anything else is.
"""

import os
import sys

_left: list[str] = []


def leave_working_directory() -> None:
    """Takes the working directory from the path, unless the command is `run`."""
    if _is_command() and sys.argv[1:2] != ["run"] and sys.path[:1] == [os.getcwd()]:
        _left.append(sys.path.pop(0))


def return_working_directory() -> None:
    """Puts it at the end of the path: a command is about to run code of the user."""
    while _left:
        sys.path.append(_left.pop())


def _is_command() -> bool:
    """Whether Python looks for this package's `__main__`: until then `-m` stands for its path."""
    asked = sys.orig_argv[-len(sys.argv)] if sys.argv[:1] == ["-m"] else ""
    return asked.removeprefix("-m") == __package__ and not sys.flags.safe_path
