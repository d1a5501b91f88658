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
    r"(?P<read>Could not find variable \S+@\d+\. .*?)?(?:"
    r"Resource localhost/(\S+)@\d+/N10tensorflow3VarE does not exist\.|"
    r"Container localhost does not exist\. \(Could not find resource: localhost/(\S+)@\d+\))"
)


def own_name(variable: str) -> str:
    """A name that no other variable of this process has, for `of_missing_value` to find."""
    return f"{variable}@{next(_numbers)}"


def is_of_missing_value(error: tf.errors.OpError) -> bool:
    """Whether the cause is that a variable, which has a name of its own, has no value."""
    return _NO_VALUE.search(error.message) is not None


def of_missing_value(error: tf.errors.OpError, is_ref: Callable[[str], bool]) -> tf.errors.OpError:
    """The error that the original raised where a variable has no value; `error` for others."""
    found = _NO_VALUE.search(error.message)
    if found is None:
        return error
    name = found[2] or found[3]
    said = f"Resource localhost/{name}/N10tensorflow3VarE does not exist."
    if found["read"]:
        said = (
            f"Could not find variable {name}. This could mean that the variable has been deleted. "
            "In TF1, it can also mean the variable is uninitialized. Debug info: "
            f"container=localhost, status error message={said}"
        )
    kind = type(error)
    if is_ref(name):
        kind, said = tf.errors.FailedPreconditionError, f"Attempting to use uninitialized value {name}"
    return kind(error.node_def, error.op, _NO_VALUE.sub(said, error.message))


def words(error: tf.errors.OpError) -> str:
    """The cause of `error`, in one line if possible."""
    return _AFTER.sub("", _BEFORE.sub("", error.message)).strip().rstrip(".")
