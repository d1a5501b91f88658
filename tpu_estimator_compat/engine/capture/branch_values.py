"""Tensors and operations of branches and loops that are used outside of them.

In a TF1 graph they were ordinary operations, and a branch that was not taken did not run. Here the
function of the branch returns each tensor, and runs each operation, that is used outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import control_flow_util_v2

_CALLER = "_called_by"
_OUTSIDE = "_outside_of_its_branch"
_FUNCTIONS = {
    "If": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "While": ("cond", "body"),
}


def note_caller(graph: tf.Graph, functions: Sequence[Any]) -> tf.Operation | None:
    """Records that the graph's last branch or loop operation calls `functions`; returns it."""
    callers = (op for op in reversed(graph.get_operations()) if _kind(op) in _FUNCTIONS)
    caller = next(callers, None) if functions else None
    if caller is not None:
        setattr(caller, _CALLER, list(functions))
        for function in functions:
            setattr(function, _CALLER, caller)
    return caller


def outside(graph: tf.Graph, tensor: tf.Tensor, consumer: str = "") -> tf.Tensor:
    """The tensor that `graph` can take for a branch's `tensor`; other tensors unchanged.

    `consumer` is the name of the operation that takes the tensor: relative to the name scope, or
    absolute if it ends with a slash. Raises ValueError where `tensor` is inside a loop.
    """
    while tensor.graph is not graph and (caller := _caller(tensor)) is not None:
        if _kind(caller) == "While":
            taker = consumer if consumer.endswith("/") else graph.unique_name(consumer, False)
            raise ValueError(
                f"Cannot use '{tensor.op.name}' as input to '{taker.rstrip('/')}' because "
                f"'{tensor.op.name}' is in a while loop. See info log for more details."
            )
        known: dict[int, tf.Tensor] = getattr(tensor.op, _OUTSIDE, {})
        setattr(tensor.op, _OUTSIDE, known)
        if tensor.value_index not in known:
            known[tensor.value_index] = _returned(caller, tensor)
        tensor = known[tensor.value_index]
    return tensor


def awaited(graph: tf.Graph, element: Any) -> Any:
    """The op that `graph` waits for in place of `element` of a branch or loop; others unchanged."""
    while (caller := _caller(element)) is not None and element.graph is not graph:
        op = element if isinstance(element, tf.Operation) else element.op
        if op not in op.graph.control_outputs:
            op.graph.control_outputs.append(op)
            _build_anew(caller)
        element = caller
    return element


def is_inside(element: Any) -> bool:
    """Whether `element` belongs to the built function of a branch or loop."""
    return _caller(element) is not None


def _caller(element: Any) -> tf.Operation | None:
    graph = getattr(element, "graph", None)  # values of eager mode have none
    return getattr(graph, _CALLER, None)


def _returned(caller: tf.Operation, tensor: tf.Tensor) -> tf.Tensor:
    """Makes a branch's function return a tensor, which has no value if the branch is not taken."""
    first = len(caller.outputs)
    for function in getattr(caller, _CALLER):
        own = function is tensor.graph
        with function.as_default(), tf.control_dependencies(None):
            taken = tf.constant(own)
            instead = tf.zeros([size or 0 for size in tensor.shape or ()], tensor.dtype)
        function.outputs.extend([tensor if own else instead, taken])
    _build_anew(caller)
    dtypes = [output.dtype for output in function.outputs]
    caller._set_type_list_attr("Tout", dtypes)
    shapes = [output.shape for output in caller.outputs]
    added = [tensor.shape, tf.TensorShape([])]
    caller._set_shape_list_attr("output_shapes", [*shapes, *added])
    caller._add_outputs(dtypes[first:], added)
    value, taken = caller.outputs[first:]
    graph = caller.graph
    with graph.as_default(), graph.name_scope(None), tf.control_dependencies(None):
        text = f"Retval[0] does not have value: {tensor.name} is in a branch that was not taken"
        check = tf.raw_ops.Assert(condition=taken, data=[text])
        with tf.control_dependencies([check]):
            result = tf.identity(value, name=tensor.op.name)
    graph.prevent_fetching(result.op)
    return result


def _build_anew(caller: tf.Operation) -> None:
    names = []
    for function in getattr(caller, _CALLER):
        function.name += "_rewritten"
        names.append(control_flow_util_v2.create_new_tf_function(function))
    attributes = _FUNCTIONS[_kind(caller)]
    if len(attributes) == 1:
        functions = [tf.compat.v1.NameAttrList(name=name) for name in names]
        value = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(func=functions))
        caller._set_attr(attributes[0], value)
        return
    for attribute, name in zip(attributes, names, strict=True):
        caller._set_func_attr(attribute, name)


def _kind(op: tf.Operation) -> str:
    return str(op.type).removeprefix("Stateless")
