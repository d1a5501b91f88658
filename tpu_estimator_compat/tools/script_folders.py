"""The words of a command line that name folders which a script writes to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

FLAGS = ("model_dir", "output_dir", "job_dir", "job-dir")
"""The flags that name such folders in most scripts."""


def replaced(
    arguments: Sequence[str], flags: Collection[str], own: Callable[[str], str]
) -> list[str]:
    """The arguments, with `own(folder)` in place of each folder that one of the flags names.

    >>> replaced(["--model_dir=a", "--output_dir", "b", "c"], FLAGS, "/new/".__add__)
    ['--model_dir=/new/a', '--output_dir=/new/b', 'c']
    """
    given = list(arguments)
    found: list[str] = []
    while given:
        word = given.pop(0)
        flag, equals, value = word.partition("=")
        if flag.lstrip("-") in flags and flag.startswith("-"):
            if not equals and given:
                value = given.pop(0)
            word = f"{flag}={own(value)}"
        found.append(word)
    return found
