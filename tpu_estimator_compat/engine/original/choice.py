"""Chooses who makes a call's loop: the original's loops in a session, or this package's."""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat.engine.capture import branch_refs
from tpu_estimator_compat.engine.graph import graph_ops, sources
from tpu_estimator_compat.engine.inputs.deployed_input import DeployedInput
from tpu_estimator_compat.engine.modes import evaluation, prediction, training
from tpu_estimator_compat.engine.modes.captured_mode import CapturedMode
from tpu_estimator_compat.engine.refs import ref_ops, resource_graph
from tpu_estimator_compat.engine.topology.chosen_topology import leaves_free
from tpu_estimator_compat.environment import SESSION

Prepared = tuple[Any, CapturedMode, DeployedInput]
"""A `Model`, which the call closes, the captured mode and its input."""


def train(prepared: Prepared, request: training.TrainRequest) -> np.generic | None:
    """Trains; returns the last loss, None without steps."""
    with contextlib.closing(prepared[0]):
        loss: np.generic | None = _loops(prepared, request, training).train(*prepared, request)
        return loss


def evaluate(prepared: Prepared, request: evaluation.EvalRequest) -> dict[str, Any]:
    """Evaluates; returns metric name to numpy value."""
    with contextlib.closing(prepared[0]):
        results: dict[str, Any] = _loops(prepared, request, evaluation).evaluate(*prepared, request)
        return results


def predict(prepared: Prepared, request: prediction.PredictRequest) -> Iterator[Any]:
    """Yields predictions until the data ends."""
    with contextlib.closing(prepared[0]):
        yield from _loops(prepared, request, prediction).predict(*prepared, request)


def _loops(prepared: Prepared, request: Any, of_steps: Any) -> Any:
    """The module of a call's loop."""
    listeners = getattr(request, "saving_listeners", ())
    if not _takes_session(prepared[1], [*request.hooks, *listeners]):
        return of_steps
    branch_refs.let_reads_fail_within(prepared[1].graph)
    from tpu_estimator_compat.engine.original import loops

    return loops


Hook = Any  # a tf.compat.v1.train.SessionRunHook
_DEBUGGER = "tensorflow.python.debug."
_OF_HOOKS = {
    "partial_run_setup": "which steps do not have",
    "get_session_handle": "whose tensors only a session keeps",
    "RunOptions": "which only sessions obey",
}
"""Names in the code of hooks and listeners."""


def _takes_session(captured: CapturedMode, hooks: Sequence[Hook]) -> bool:
    """Whether a session runs the graph of a mode; logs why, unless `runtime` says so."""
    if captured.topology.runtime == SESSION:
        return True
    if not _is_free(captured, hooks):
        return False
    hooks = [*hooks, *captured.spec.hooks, *captured.spec.chief_hooks]
    reasons = itertools.chain(_operations(captured.graph), _debuggers(hooks), _calls(hooks))
    reason = next(reasons, None)
    if reason is None:
        return False
    logging.info("TensorFlow's session runs the original's loop: %s.", reason)
    return True


def _is_free(captured: CapturedMode, hooks: Sequence[Hook]) -> bool:
    """Whether nothing asks for another runtime: replicas, an accelerator, Keras, input's state."""
    topology = captured.topology
    return (
        leaves_free(captured.config)
        and not (topology.tpu_semantics or topology.num_replicas > 1 or topology.workers)
        and not any(isinstance(hook, keras.callbacks.Callback) for hook in hooks)
    )


def _operations(graph: tf.Graph) -> Iterator[str]:
    for op in (op for each in sources.with_graphs(graph) for op in each.get_operations()):
        if need := _need(op.type):
            yield _said(op, need)
    for name, need in resource_graph.for_sessions(graph).items():
        yield _said(graph.get_operation_by_name(name), need)


def _said(op: tf.Operation, need: str) -> str:
    line = sources.of_operation(op)
    where = f" at {line}" if line else ""
    return f"operation '{op.name}' ({op.type}){where} {need}"


@functools.cache
def _need(kind: str) -> str:
    """Why operations of a type need a session; empty for most. A call asks for every operation."""
    if graph_ops.is_of_session(kind):
        return "has state that only a session keeps"
    if ref_ops.needs_ref(kind):
        return "takes a ref variable, and no operation on resource variables does the same"
    return ""


def _debuggers(hooks: Sequence[Hook]) -> Iterator[str]:
    for kind in map(type, hooks):
        if any(f"{base.__module__}.".startswith(_DEBUGGER) for base in kind.__mro__):
            yield f"TensorFlow's debugger, by the hook {kind.__name__}, watches a session's kernels"


def _calls(hooks: Sequence[Hook]) -> Iterator[str]:
    for hook in hooks:
        # Not those of TensorFlow: its profiler traces steps too.
        users = [
            base for base in type(hook).__mro__ if not base.__module__.startswith("tensorflow.")
        ]
        methods = [f for base in users for f in vars(base).values()]
        used = set().union(*map(_names, [*methods, *getattr(hook, "__dict__", {}).values()]))
        for name, text in _OF_HOOKS.items():
            if name in used:
                yield f"the class {type(hook).__name__} uses {name}, {text}"


def _names(value: Any, depth: int = 1) -> set[str]:
    """The names that a function uses, and those that its helpers use; of an object, its type's."""
    value = getattr(value, "__func__", value)  # of a static method, or a bound one
    code = getattr(value, "__code__", None)
    if code is None:
        return {type(value).__name__}
    helpers = [value.__globals__.get(name) for name in code.co_names]
    cells = value.__closure__ or ()
    helpers += [cell.cell_contents for cell in cells if cell != types.CellType()]
    return set(code.co_names).union(*(_names(each, depth - 1) for each in helpers if depth))
