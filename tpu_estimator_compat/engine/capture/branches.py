"""Builds functions of branches and loops as if their operations were in the graph around them.

TensorFlow 2 makes a function of each branch of a `tf.cond` and of each body of a loop. With
`tf.disable_v2_behavior()` TensorFlow 1 put their operations into the graph around them.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture import branch_refs, branch_values
from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.tf_internals import cond_v2, ops, variable_scope, while_v2

_here = threading.local()

_COND = inspect.unwrap(tf.compat.v1.cond)


@contextlib.contextmanager
def as_captured(*, of_one_graph: bool) -> Iterator[None]:
    """A context, in this thread, where ops that wait for a branch also wait for its variable reads.

    With `of_one_graph`, branches and loops also have the names and the variables that they would
    have in the graph around them; it is ignored inside another `as_captured`.
    """
    if getattr(_here, "of_one_graph", None) is not None:
        yield
        return
    _here.of_one_graph = of_one_graph
    try:
        with (
            patched(cond_v2, "cond_v2", _captured_cond),
            patched(cond_v2, "indexed_case", _captured_case),
            patched(while_v2, "while_loop", _captured_loop),
            patched(ops, "_get_graph_from_inputs", _captured_graph_of),
            branch_refs.from_outside(),
        ):
            yield
    finally:
        _here.of_one_graph = None


def _captured_graph_of(graph_of: Function, inputs: Any, graph: tf.Graph | None = None) -> Any:
    """The graph of an operation that takes `inputs`; tensors inside branches do not count."""
    return graph_of([each for each in inputs if not branch_values.is_inside(each)], graph)


def _captured_cond(
    cond: Function, pred: Any, true_fn: Any, false_fn: Any, name: str = "cond"
) -> Any:
    with _noted() as graphs:
        branches = [true_fn, false_fn]
        unpacks = _unpacks_lists_of_one()
        if unpacks:
            branches = [lambda branch=branch: _unpacked(branch()) for branch in branches]
        result = cond(pred, *_branches(branches, graphs), name)
        return _unpacked(result) if unpacks else result


def _unpacks_lists_of_one() -> bool:
    """Whether the `tf.cond` that is being made gives `x` for `[x]`, as in a graph of TensorFlow 1.

    TensorFlow 2's function is not told of its caller's `strict`, on which that depends.
    """
    if not getattr(_here, "of_one_graph", False) or _is_of_a_function():
        return False
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not _COND.__code__:
        frame = frame.f_back
    return frame is not None and not frame.f_locals["strict"]


def _is_of_a_function() -> bool:
    """Whether the graph is that of a tf.function, and not of a branch."""
    return getattr(tf.compat.v1.get_default_graph(), "_add_control_dependencies", False)


def _unpacked(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


def _captured_case(case: Function, index: Any, branch_fns: Any, *args: Any, **kwargs: Any) -> Any:
    with _noted() as graphs:
        return case(index, _branches(branch_fns, graphs), *args, **kwargs)


def _captured_loop(loop: Function, cond: Any, body: Any, *args: Any, **kwargs: Any) -> Any:
    if not getattr(_here, "of_one_graph", False):
        return loop(cond, body, *args, **kwargs)
    with _noted() as graphs:
        used: dict[str, int] = {}
        cond, body = (_in_one_graph(_named(each, used), graphs) for each in (cond, body))
        return loop(cond, body, *args, **kwargs)


@contextlib.contextmanager
def _noted() -> Iterator[list[tf.Graph]]:
    """Yields a list for the graphs of new functions, and records the operation that calls them."""
    graphs: list[tf.Graph] = []
    yield graphs
    caller = branch_values.note_caller(tf.compat.v1.get_default_graph(), graphs)
    if caller is not None and caller.type == "While" and branch_refs.are_in(graphs):
        # Or a session begins an iteration, with old values, before the writes of the one before.
        caller._set_attr("parallel_iterations", tf.compat.v1.AttrValue(i=1))


def _branches(
    branches: Sequence[Callable[[], Any]], graphs: list[tf.Graph]
) -> list[Callable[[], Any]]:
    of_one_graph = getattr(_here, "of_one_graph", None)
    if of_one_graph is None:
        return list(branches)
    waiting = [_waiting(branch) for branch in branches]
    if not of_one_graph:
        return waiting
    used: dict[str, int] = {}
    return [_in_one_graph(_named(branch, used), graphs) for branch in waiting]


def _waiting(branch: Callable[[], Any]) -> Callable[[], Any]:
    """A branch whose function has run its reads and writes of variables when it has run.

    In a TF1 graph, a function ends with its results, and an operation that only waits for a
    `tf.cond` might run before the variables in a branch are read or written: a summary, or the loop
    that reads the global step.
    """

    def call() -> Any:
        result = branch()
        if _is_of_a_function():  # which does the same for all ops
            return result
        graph = tf.compat.v1.get_default_graph()
        made = tf.nest.flatten(result, expand_composites=True)
        found = [x for x in made if tf.is_tensor(x) or isinstance(x, tf.Operation)]
        targets = [graph_ops.as_operation(x) for x in found if x.graph is graph]
        graph.control_outputs.extend(
            op
            for op in graph_ops.in_creation_order(graph_ops.ancestors(targets, ()))
            if graph_ops.definition(op).is_stateful and graph_ops.resources(op)
        )
        return result

    return call


def _named(function: Callable[..., Any], used: dict[str, int]) -> Callable[..., Any]:
    """A branch or body in its caller's name scope; functions of a caller share a count of names.

    Operations and variables that a branch made were named after it: `cond/beta1_power`, in
    checkpoints too. A branch with its own graph would number names anew.
    """

    def call(*args: Any) -> Any:
        graph = tf.compat.v1.get_default_graph()
        graph._names_in_use.update(used)
        scope = graph.outer_graph.get_name_scope()
        with graph.name_scope(f"{scope}/" if scope else None):
            result = function(*args)
        used.update(graph._names_in_use)
        return result

    return call


def _in_one_graph(function: Callable[..., Any], graphs: list[tf.Graph]) -> Callable[..., Any]:
    """A branch or body that makes variables and writes summaries as in the graph around it.

    In a function, TensorFlow makes resource variables, and the user has to run the summaries. In
    TensorFlow 1, a `tf.cond` or loop wrote its own summaries. `graphs` gets the function's graph.
    """
    use_resource = variable_scope.get_variable_scope().use_resource

    def call(*args: Any) -> Any:
        graph = tf.compat.v1.get_default_graph()
        graphs.append(graph)
        variable_scope.get_variable_scope().set_use_resource(use_resource)
        written = graph.get_collection_ref(tf.compat.v1.GraphKeys._SUMMARY_COLLECTION)
        before = len(written)
        result = function(*args)
        graph.control_outputs.extend(summary.op for summary in written[before:])
        del written[before:]
        return branch_refs.values(result)

    return call
