"""Errors of operations, with the user's line that made the operation at their end.

A step is a function that TensorFlow imported from a definition, and knows no lines of. The captured
graph does: it has an operation of the same name, with the stack of the call that made it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.framework import error_interpolation

from tpu_estimator_compat.program import sources

# TensorFlow has looked for the lines in the step, in vain.
_IN_VAIN = re.compile(r"^Detected at node .*\n<stack traces unavailable>\n", re.MULTILINE)
_OF_INPUT = "IteratorGetNext"


@contextlib.contextmanager
def with_lines(graph: tf.Graph) -> Iterator[None]:
    """Adds to an error of an operation the user's lines that made the operation.

    Args:
      graph: the captured graph.
    """
    try:
        yield
    except tf.errors.OpError as error:
        _add_lines(error, graph)
        raise


def _add_lines(error: tf.errors.OpError, graph: tf.Graph) -> None:
    message = _IN_VAIN.sub("", error.message)
    _, _, tags = error_interpolation.parse_message(message)
    for tag in tags:
        ops = _called(graph, tag.name, of_input=_OF_INPUT in message)
        stacks = [stack for stack in dict.fromkeys(map(sources.stack_text, ops)) if stack]
        if stacks:
            # `OpError.__str__` has these words too, with all of TensorFlow's own lines below the
            # user's.
            titled = [f"Original stack trace for {tag.name!r}:\n{stack}" for stack in stacks]
            error._message = "\n\n".join([message, *titled]).rstrip()
            return


def _called(graph: tf.Graph, name: str, *, of_input: bool) -> list[tf.Operation]:
    """The operations that a message calls `name`, of the input or of the step.

    A message says the name of an operation within a function, but not of which function: there may
    be several. Names of calls, branches and loops may stand before the name.
    """
    dataset = {op for op in graph.get_operations() if "Dataset" in op.type}
    roots = dataset if of_input else set(graph.get_operations()) - dataset
    ops = list(sources.with_functions(roots))
    parts = name.split("/")
    for first in range(len(parts)):
        suffix = "/".join(parts[first:])
        if found := [op for op in ops if op.name == suffix]:
            return found
    return []
