"""What keeps chance out of scenarios: reads of variables that race with a step's updates."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

IN_THE_ORIGINAL = tf.__version__.startswith("2.15.")


def _reads_that_wait_for_nothing() -> list[Any]:
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

    In the original, a read that waits for nothing (a hook's fetch, a summary) races with the
    updates. There, zero also waits for the reads that the graph has, since on a busy machine the
    milliseconds pass before them. Here, such reads come first by design: scenarios judge that.
    """

    def wait() -> Any:
        time.sleep(0.005)
        return np.float32(0)

    with tf.control_dependencies(_reads_that_wait_for_nothing() if IN_THE_ORIGINAL else []):
        zero = tf.py_func(wait, [], tf.float32)
    zero.set_shape([])
    return zero
