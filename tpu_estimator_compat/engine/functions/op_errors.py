"""Messages of TensorFlow's errors, without names of internal functions and nodes."""

from __future__ import annotations

import itertools
import re

import tensorflow as tf

_BEFORE = re.compile(
    r"^Graph execution error:\s+"
    r"(Detected at node [^\n]*\n(<stack traces unavailable>\n|(\s*File [^\n]*\n\s*)+)?)?"
)
_AFTER = re.compile(r"\s*(\[\[\{\{node [^\]]*\]\]|\[Op:[^\]]*\])")
_numbers = itertools.count()
_OWN_NAME = re.compile(r"(?:localhost/)?(\S+)(@variable\d+)")
_NO_VALUE = re.compile(
    r"(Could not find variable .* message=)?(Resource|Container) localhost.* does not exist\."
    r"( \(Could not find resource: \S+\))?"
)


def own_name(variable: str) -> str:
    """A name that is unique in this process, and that `of_missing_value` finds in an error."""
    return f"{variable}@variable{next(_numbers)}"


def of_missing_value(error: tf.errors.OpError, graph: tf.Graph) -> tf.errors.OpError:
    """The original's error where a variable of `graph` has no value; `error` for other causes."""
    found = _OWN_NAME.search(error.message)
    if found is None:
        return error
    kind, name = type(error), found[1]
    said = rf"\1Resource localhost/{name}/N10tensorflow3VarE does not exist."
    if graph.get_operation_by_name(name).type != "VarHandleOp":
        kind = tf.errors.FailedPreconditionError
        said = f"Attempting to use uninitialized value {name}"
    message = _NO_VALUE.sub(said, error.message).replace(found[2], "")
    return kind(error.node_def, error.op, message)


def words(error: tf.errors.OpError) -> str:
    """The cause of `error`, in one line if possible."""
    return _AFTER.sub("", _BEFORE.sub("", error.message)).strip().rstrip(".")
