"""Explains why a checkpoint does not fit a graph, or cannot be read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from tpu_estimator_compat.engine.checkpoint.state import (
    UNREADABLE,
    damage,
    damaged,
    exists,
)
from tpu_estimator_compat.engine.files import user_files
from tpu_estimator_compat.engine.functions import op_errors

_SHOWN = 10
_MISMATCH = (
    "Restoring from checkpoint failed. This is most likely due to a mismatch between the current "
    "graph and the graph from the checkpoint. Please ensure that you have not altered the graph "
    "expected based on the checkpoint. Original error:\n\nAssign requires shapes of both tensors "
    "to match."
)
"""TensorFlow's words for a ref variable; resource variables take any shape, without a word."""


@contextlib.contextmanager
def explained(graph: tf.Graph, saver: tf.compat.v1.train.Saver, path: str) -> Iterator[None]:
    """Explains errors of a restore, and refuses a checkpoint whose shapes differ from the model's.

    Raises InvalidArgumentError for another shape, unless the saver has a `restore` of its own,
    ValueError for no checkpoint, and DataLossError if its files cannot be read. Any other error is
    that of the saver, or of a saveable.
    """
    problems = mismatches(graph, saver, path)
    is_plain = getattr(type(saver), "restore", None) is tf.compat.v1.train.Saver.restore
    if is_plain and any(problem.wrong_shape for problem in problems):
        message = f"{_MISMATCH}\n{path} does not fit the model.\n{_listed(problems)}"
        raise tf.errors.InvalidArgumentError(None, None, message)
    try:
        yield
    except ValueError as error:  # `restore` found no checkpoint
        if exists(path):
            raise
        raise ValueError(f"{error}\n{_what_happened(path)}") from None
    except tf.errors.OpError as error:
        if problems:
            message = f"{error.message}\n\n{_listed(problems)}"
            raise type(error)(error.node_def, error.op, message) from None
        if not isinstance(error, UNREADABLE) or damage(path) is None:
            raise
        raise _unreadable(error, path) from None


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Raises DataLossError for a reader's errors about damaged files."""
    try:
        yield
    except tf.errors.OpError as error:
        # A reader raises the base class for damaged data.
        if not isinstance(error, UNREADABLE) and type(error) is not tf.errors.OpError:
            raise
        raise _unreadable(error, path) from None


def _unreadable(error: tf.errors.OpError, path: str) -> tf.errors.DataLossError:
    words = op_errors.words(error)
    return damaged(error, f"Could not read checkpoint {path}: {words}.\n{_what_happened(path)}")


def _what_happened(path: str) -> str:
    if not tf.io.gfile.isdir(path) and not exists(path):
        return (
            "It is not there, or was removed while it was being read. If the training that wrote "
            "it removed it, let that keep more with RunConfig(keep_checkpoint_max=...)."
        )
    if tf.io.gfile.isdir(path):
        return (
            "It is a directory. Pass the checkpoint in it, which tf.train.latest_checkpoint(...) "
            "names."
        )
    return (
        "It may be damaged or half written. Name an older one in the file `checkpoint` beside it, "
        "pass checkpoint_path, or take another model_dir to begin anew."
    )


class Mismatch(NamedTuple):
    text: str
    wrong_shape: bool


def mismatches(graph: tf.Graph, saver: tf.compat.v1.train.Saver, path: str) -> list[Mismatch]:
    """Variables that `saver` restores and the checkpoint lacks or has in another shape."""
    try:
        reader = tf.train.load_checkpoint(user_files.readable(path))
    except (tf.errors.OpError, ValueError):
        return []
    shapes = reader.get_variable_to_shape_map()
    found = []
    for name, variable in _restored(graph, saver):
        if name not in shapes:
            found.append(Mismatch(f"Variable {name!r} is not in the checkpoint.", False))
        elif not getattr(variable, "_validate_shape", True):
            continue  # a ref variable of any shape
        elif not variable.shape.is_compatible_with(shapes[name]):
            shape, saved = tuple(variable.shape.as_list()), tuple(shapes[name])
            text = (
                f"Variable {name!r} has shape {shape} in the model and {saved} in the checkpoint."
            )
            found.append(Mismatch(text, True))
    return found


def _restored(graph: tf.Graph, saver) -> list[tuple[str, tf.Variable]]:
    """(name in the checkpoint, variable) for whole variables of `saver`."""
    variables = saver._var_list
    if variables is None:
        variables = graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES)
    if isinstance(variables, dict):
        pairs = list(variables.items())
    else:
        pairs = [(v.op.name, v) for v in variables if hasattr(v, "op")]
    return [
        (name, v)
        for name, v in pairs
        if isinstance(v, tf.Variable) and not getattr(v, "_save_slice_info", None)
    ]


def _listed(problems: list[Mismatch]) -> str:
    lines = [problem.text for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        lines.append(f"... and {len(problems) - _SHOWN} more.")
    lines.append(
        "Point model_dir at an empty directory to start anew, or use warm_start_from or "
        "init_from_checkpoint to take over only the variables that fit."
    )
    return "\n".join(lines)
