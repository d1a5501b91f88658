"""Finds the line that made an operation of a captured graph: the user's, or one of Keras.

A step is a function that TensorFlow imported from a definition, without lines. The captured graph
has an operation of the same name, with its stack.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import pathlib
import re
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.functions import op_errors
from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.graph.source_line import SourceLine
from tpu_estimator_compat.tf_internals import error_interpolation

_LIBRARIES = (
    "tensorflow",
    "tensorflow_estimator",
    "keras",
    "tf_keras",
    "tf_slim",
    "numpy",
    "tpu_estimator_compat",
)
"""Packages without user code; other packages in site-packages may be legacy code."""


# TensorFlow's text where it found no lines for an operation of the step.
_IN_VAIN = re.compile(r"^Detected at node .*\n<stack traces unavailable>\n", re.MULTILINE)
_OF_INPUT = "IteratorGetNext"

_THIS_PACKAGE = str(pathlib.Path(__file__).absolute().parents[2]) + os.sep


def _folders() -> tuple[str, ...]:
    packages = {os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(tf.__file__))))}
    packages |= {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    found = [os.path.join(p, name) + os.sep for p in packages for name in _LIBRARIES]
    return (*found, _THIS_PACKAGE)


_NOT_THE_USERS = _folders()
_STANDARD_LIBRARY = os.path.dirname(os.path.abspath(traceback.__file__)) + os.sep


def is_users(filename: str) -> bool:
    if filename.startswith("<") or filename.startswith(_NOT_THE_USERS):
        return False
    in_packages = os.sep + "site-packages" + os.sep in filename
    return in_packages or not filename.startswith(_STANDARD_LIBRARY)


def of_frames(frames: Iterable[Any]) -> SourceLine | None:
    """The user's innermost line; `frames` begin with the outermost."""
    of_user = _users(frames)
    if not of_user:
        return None
    frame = of_user[-1]
    code = linecache.getline(frame.filename, frame.lineno).strip()
    return SourceLine(frame.filename, frame.lineno, frame.name, code)


def of_error(error: BaseException) -> SourceLine | None:
    return of_frames(traceback.extract_tb(error.__traceback__))


def of_operation(op: tf.Operation) -> SourceLine | None:
    """The user's line that made `op`; for a gradient, the line whose gradient it is."""
    return of_frames(_stack(op))


def stack_text(op: tf.Operation) -> str:
    """The user's lines that made `op`, as in a traceback, outermost first.

    Lines above the first line of this package are left out: an error's traceback has them.
    """
    frames = list(_stack(op))
    ours = [i for i, frame in enumerate(frames) if frame.filename.startswith(_THIS_PACKAGE)]
    users = _users(frames[ours[0] if ours else 0 :])
    lines = dict.fromkeys((f.filename, f.lineno, f.name) for f in users)
    return "".join(traceback.format_list([traceback.FrameSummary(*line) for line in lines]))


def _users(frames: Iterable[Any]) -> list[Any]:
    return [frame for frame in frames if is_users(frame.filename)]


def _stack(op: tf.Operation) -> Any:
    op = graph_ops.original(op)
    while op._original_op is not None:
        op = op._original_op
    return op.traceback or ()  # of a function that was read from a file, None


def function_graph(graph: tf.Graph, name: str) -> tf.Graph | None:
    """The graph of a function that `graph` knows; None where only its definition is known."""
    while graph is not None:
        if graph._is_function(name):
            return getattr(graph._get_function(name), "graph", None)
        graph = getattr(graph, "outer_graph", None)
    return None


def with_functions(ops: Iterable[tf.Operation]) -> Iterator[tf.Operation]:
    """Yields `ops`, and operations of functions that they call at any depth, each function once."""
    seen: set[str] = set()
    left = list(ops)
    while left:
        op = left.pop()
        yield op
        for name in graph_def.called_functions(op) if graph_ops.calls_functions(op) else ():
            inner = function_graph(op.graph, name)
            if inner is not None and name not in seen:
                seen.add(name)
                left += inner.get_operations()


def is_function(op: tf.Operation) -> bool:
    return bool(op.graph._is_function(op.type))


def with_graphs(graph: tf.Graph) -> Iterator[tf.Graph]:
    """Yields `graph`, and the graphs of its functions at any depth, each once."""
    seen, left = {id(graph)}, [graph]
    while left:
        current = left.pop()
        yield current
        for name in list(current._functions):
            inner = function_graph(current, name)
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                left.append(inner)


class Sources:
    """Finds operations of a captured graph by the names that compilers give them."""

    def __init__(self, graph: tf.Graph):
        self._graph = graph

    @functools.cached_property
    def _graphs(self) -> list[tf.Graph]:
        return list(with_graphs(self._graph))

    def find(self, name: str) -> tf.Operation | None:
        """The operation that a compiler calls `name`, or None.

        Compilers prepend names of calls, branches and loops to the names of operations inside them.
        """
        parts = name.split("/")
        for graph in self._graphs:
            for first in range(len(parts)):
                try:
                    return graph.get_operation_by_name("/".join(parts[first:]))
                except (KeyError, ValueError):
                    continue
        return None

    def __getitem__(self, name: str) -> SourceLine | None:
        op = self.find(name)
        return None if op is None else of_operation(op)


@contextlib.contextmanager
def with_lines(graph: tf.Graph) -> Iterator[None]:
    """Adds the user's lines that made an operation to its error."""
    try:
        yield
    except tf.errors.OutOfRangeError:  # the end of the data
        raise
    except tf.errors.OpError as error:
        said = op_errors.of_missing_value(error, graph)
        _add_lines(said, graph)
        if said is not error:
            raise said.with_traceback(error.__traceback__) from None
        raise


def _add_lines(error: tf.errors.OpError, graph: tf.Graph) -> None:
    message = _IN_VAIN.sub("", error.message)
    _, _, tags = error_interpolation.parse_message(message)
    for tag in tags:
        ops = _named(graph, tag.name, of_input=_OF_INPUT in message)
        stacks = [stack for stack in dict.fromkeys(map(stack_text, ops)) if stack]
        if stacks:
            # The words of `OpError.__str__`, which adds TensorFlow's own lines.
            titled = [f"Original stack trace for {tag.name!r}:\n{stack}" for stack in stacks]
            error._message = "\n\n".join([message, *titled]).rstrip()
            return


def _named(graph: tf.Graph, name: str, *, of_input: bool) -> list[tf.Operation]:
    """The operations that a message calls `name`, of the input or of the step.

    There may be several: a message does not name the function that contains the operation. Names of
    calls, branches and loops may precede the name.
    """
    dataset = {op for op in graph.get_operations() if "Dataset" in op.type}
    roots = dataset if of_input else set(graph.get_operations()) - dataset
    ops = list(with_functions(roots))
    parts = name.split("/")
    for first in range(len(parts)):
        suffix = "/".join(parts[first:])
        if found := [op for op in ops if op.name == suffix]:
            return found
    return []


Code = tuple[str, ...]


def _ends(*paths: str) -> Code:
    return tuple(os.sep + path.replace("/", os.sep) for path in paths)


_COMMON = _ends(
    "keras/src/layers/", "keras/src/optimizers/", "keras/src/random/", "tf_keras/src/layers/"
)
READING_OF_KERAS = (
    *_COMMON,
    *_ends("keras/src/backend/common/variables.py", "tf_keras/src/optimizers/"),
)
"""Files of code that expects its reads of variables in the order of its lines."""
UPDATING_OF_KERAS = (*_COMMON, *_ends("tf_keras/src/optimizers/optimizer.py"))
"""Files of code that writes to variables, and returns no op for the write."""


def is_by(op: tf.Operation, code: Code) -> bool:
    """Whether code in the files `code` made `op`."""
    return any(
        part in frame.filename for frame in graph_ops.original(op).traceback for part in code
    )
