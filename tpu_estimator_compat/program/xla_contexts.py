"""Whether a model_fn is built for XLA, as those of its time ask TensorFlow's inside.

On a TPU the original called a model_fn in a context that says so; some return another spec there,
or ask for static shapes. With TPU rules they get that answer here on any devices, while TensorFlow,
which would leave out what only XLA cannot do, goes by what really compiles the graph.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_ops, control_flow_util
from tensorflow.python.tpu import tpu_function


def GetContainingXLAContext(ctxt: Any) -> Any:
    """The innermost context of XLA around a control flow context; None if there is none."""
    found = control_flow_util.GetContainingXLAContext(ctxt)
    if found is None and _is_for_tpu():
        return control_flow_ops.XLAControlFlowContext()
    return found


def InXlaContext(graph: tf.Graph) -> bool:
    """Whether what is built in a graph now is for XLA."""
    return _is_for_tpu() or control_flow_util.InXlaContext(graph)


def GraphOrParentsInXlaContext(graph: tf.Graph) -> bool:
    """The same, of a graph or one of those around it."""
    return _is_for_tpu() or control_flow_util.GraphOrParentsInXlaContext(graph)


def IsInXLAContext(op: tf.Operation) -> bool:
    """Whether an operation was built for XLA."""
    return _is_for_tpu() or control_flow_util.IsInXLAContext(op)


def _is_for_tpu() -> bool:
    return tpu_function.get_tpu_context().number_of_shards is not None
