"""Activations and gradients of a training step: the tensors, and the lines that made them."""

from __future__ import annotations

import linecache
import os
import pathlib
from typing import Any

from . import randomness  # relative: on the original's side, this package has another name

_HERE = str(pathlib.Path(__file__).absolute().parents[3])
_LIBRARIES = ("tensorflow", "tensorflow_estimator", "keras", "tf_keras", "tf_slim")
_NEITHER = {"Const", "Placeholder", "IteratorGetNext", "ReadVariableOp", "VariableV2"}
_GRADIENTS = "gradients"
"""The first part of the names of `tf.gradients`' operations."""


def of_step(loss: Any, train_op: Any) -> list[tuple[str, Any, dict[str, Any]]]:
    """Float tensors that the loss needs, and gradients, in the order of the graph.

    Each item is the operation's name, the tensor, and facts: `type`, `gradient`, `file`, `line` and
    `code`.
    """
    forward = randomness.ancestors([loss.op])
    backward = {op for op in randomness.ancestors([train_op]) if _is_gradient(op)}
    ops = sorted(forward | backward, key=lambda op: int(op._id))
    return [(op.name, op.outputs[0], _facts(op)) for op in ops if _can_be_fetched(op)]


def _is_gradient(op: Any) -> bool:
    return any(part.startswith(_GRADIENTS) for part in op.name.split("/"))


def _can_be_fetched(op: Any) -> bool:
    if not op.outputs or op.type in _NEITHER or op._get_control_flow_context() is not None:
        return False
    # The read of a ref variable shares the variable's memory, and shows later writes of the step.
    refs = any(tensor.dtype._is_ref_dtype for tensor in [op.outputs[0], *op.inputs])
    return bool(op.outputs[0].dtype.is_floating) and not refs


def _facts(op: Any) -> dict[str, Any]:
    file, line = _users_line(op)
    code = linecache.getline(file, line).strip() if file else ""
    gradient = _is_gradient(op)
    return {"type": op.type, "gradient": gradient, "file": file, "line": line, "code": code}


def _users_line(op: Any) -> tuple[str, int]:
    """The innermost line outside of libraries; for a gradient, that of its operation."""
    while op._original_op is not None:
        op = op._original_op
    found = ("", 0)
    for frame in op.traceback:
        file, line = frame[0], frame[1]
        if not _is_library(file):
            found = (file, line)
    return found


def _is_library(file: str) -> bool:
    if file.startswith("<") or file.startswith(_HERE + os.sep) or "runpy" in file:
        return True
    within = file.rpartition(f"site-packages{os.sep}")
    return bool(within[1]) and within[2].split(os.sep)[0] in _LIBRARIES
