"""What keeps chance out of scenarios: reads of variables that race with a step's updates."""

import collections
import os
import time
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

_UPDATES = ("ResourceApply", "ResourceSparseApply", "ResourceScatter", "AssignAdd", "AssignSub")


def _has_races() -> bool:
    """Whether the original's loops run the steps, in TensorFlow 2.15 or in a session of today's."""
    in_session = os.environ.get("TPU_ESTIMATOR_COMPAT_RUNTIME") == "session"
    return in_session or tf.__version__.startswith("2.15.")


def early_reads() -> list[Any]:
    """Reads of variables that wait for nothing, which race with updates in a session."""
    of_variables = [
        op
        for op in tf.get_default_graph().get_operations()
        if op.type in ("ReadVariableOp", "Identity")
        and op.inputs[0].op.type in ("VarHandleOp", "VariableV2")
        and not op.control_inputs
    ]
    # What hooks take the number of a step from.
    return [*of_variables, *tf.get_collection("global_step_read_op_cache")]


def late_zero() -> Any:
    """Zero, a scalar of float32, after some milliseconds. Updates of a step go behind it.

    A sum with it does not hold updates back, since gradients do not need its value; a product does.

    In the original's loops, a read that waits for nothing (a hook's fetch, a summary) races with
    the updates. There, zero also waits for the reads that the graph has, since on a busy machine
    the milliseconds pass before them. Our steps take such reads first by design: scenarios judge
    that.
    """

    def wait() -> Any:
        time.sleep(0.005)
        return np.float32(0)

    with tf.control_dependencies(early_reads() if _has_races() else []):
        zero = tf.py_func(wait, [], tf.float32)
    zero.set_shape([])
    return zero


def order_summaries() -> None:
    """Has the original's loops read variables for summaries before the step updates them.

    For models whose updates cannot be held back by `late_zero`, such as the canned ones.
    """
    assert _has_races()
    from tensorflow.python.training import basic_session_run_hooks

    begin = basic_session_run_hooks.SummarySaverHook.begin

    def begin_in_order(hook: Any) -> None:
        _have_updates_wait(tf.get_default_graph())
        begin(hook)

    basic_session_run_hooks.SummarySaverHook.begin = begin_in_order


def _have_updates_wait(graph: tf.Graph) -> None:
    reads: dict[str, list[tf.Operation]] = collections.defaultdict(list)
    for op in graph.get_operations():
        if op.type == "ReadVariableOp" and not op.control_inputs:
            reads[op.inputs[0].name].append(op)
    for op in graph.get_operations():
        if op.type.startswith(_UPDATES):
            for handle in op.inputs:
                op._add_control_inputs(reads[handle.name])
