"""Messages of TensorFlow's errors, without names of internal functions and nodes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import tensorflow as tf

_BEFORE = re.compile(
    r"^Graph execution error:\s+"
    r"(Detected at node [^\n]*\n(<stack traces unavailable>\n|(\s*File [^\n]*\n\s*)+)?)?"
)
_AFTER = re.compile(r"\s*(\[\[\{\{node [^\]]*\]\]|\[Op:[^\]]*\])")

_numbers = itertools.count()
_NO_VALUE = re.compile(
    r"(?:\{\{function_node \S+\}\} )?Could not find variable (\S+)@\d+\. .* does not exist\.(?: \(Could not find [^)]*\))?"
)


def own_name(variable: str) -> str:
    """A name in this process that no other variable has, which `without_value` knows."""
    return f"{variable}@{next(_numbers)}"


def is_without_value(error: tf.errors.OpError) -> bool:
    """Whether the cause is that a variable with a name of `own_name` has no value."""
    return _NO_VALUE.search(error.message) is not None


def without_value(message: str, is_ref: Callable[[str], bool]) -> str:
    """A message that says of a variable that it has no value, in the words of the original."""

    def said(found: re.Match[str]) -> str:
        name = found[1]
        if is_ref(name):
            return f"Attempting to use uninitialized value {name}"
        return (
            f"Could not find variable {name}. This could mean that the variable has been deleted. "
            "In TF1, it can also mean the variable is uninitialized. Debug info: container="
            f"localhost, status error message=Resource localhost/{name}/N10tensorflow3VarE does "
            "not exist."
        )

    return _NO_VALUE.sub(said, message)


def words(error: tf.errors.OpError) -> str:
    """The cause of `error`, in one line if possible."""
    return _AFTER.sub("", _BEFORE.sub("", error.message)).strip().rstrip(".")
