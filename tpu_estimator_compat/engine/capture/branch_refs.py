"""Lets functions of branches and loops write to ref variables of the graph around them.

A function takes values, not refs. So it captures a ref of the graph around it as a read of the
variable, and an operation that writes gets a new ref: a `VariableV2` with the variable's name. In a
session that is the variable; steps refuse such functions.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.capture import branch_values
from tpu_estimator_compat.engine.capture.patches import Function, patched
from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.refs import ref_ops
from tpu_estimator_compat.tf_internals import FuncGraph

_REFS = "_refs_from_outside"
_HAS_REFS = "_has_refs_from_outside"
_FUNCTIONS = frozenset({"CondBranchFuncGraph", "WhileCondFuncGraph", "WhileBodyFuncGraph"})
"""Graphs of users' functions; those of gradients take tensors of branches in another way."""


def from_outside() -> contextlib.AbstractContextManager[None]:
    """A context in which functions may write to ref variables of the graph around them."""
    return patched(FuncGraph, "_create_op_internal", _create_with_refs)


def are_in(functions: Sequence[tf.Graph]) -> bool:
    """Whether `functions`, or functions that they call, have refs to variables from outside."""
    return any(hasattr(function, _HAS_REFS) for function in functions)


def values(result: Any) -> Any:
    """A function's results, with values in place of refs."""
    return tf.nest.map_structure(
        lambda x: tf.identity(x) if tf.is_tensor(x) and x.dtype._is_ref_dtype else x, result
    )


def _create_with_refs(
    create: Function,
    self: Any,
    op_type: str,
    inputs: Sequence[Any],
    dtypes: Any = None,
    input_types: Any = None,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if type(self).__name__ in _FUNCTIONS:
        inputs = [branch_values.outside(self, tensor, name or op_type) for tensor in inputs]
    if any(_is_from_outside(self, tensor) for tensor in inputs):
        expected = input_types or [tensor.dtype.base_dtype for tensor in inputs]
        inputs = [
            _within(self, tensor, dtype) if _is_from_outside(self, tensor) else tensor
            for tensor, dtype in zip(inputs, expected, strict=True)
        ]
    return create(self, op_type, inputs, dtypes, input_types, name, *args, **kwargs)


def _is_from_outside(graph: Any, tensor: Any) -> bool:
    if not tensor.dtype._is_ref_dtype or tensor.graph is graph:
        return False
    return _variable(tensor).type in ref_ops.VARIABLES


def _variable(tensor: tf.Tensor) -> tf.Operation:
    op = tensor.op
    while op.type not in ref_ops.VARIABLES and op.inputs:
        op = op.inputs[0].op
    return op


def _within(graph: Any, tensor: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """A function's tensor for an outside ref: its value, or a ref where `dtype` is one."""
    variable = _variable(tensor)
    if not dtype._is_ref_dtype:
        return graph.capture(_read_around(tensor, variable))
    if type(graph).__name__ not in _FUNCTIONS:  # a tf.function: TensorFlow refuses the write
        return tensor
    # The ref that a write returned waits for the write.
    waits = [] if tensor.op is variable else [graph.capture(_read_around(tensor, variable))]
    caller = graph
    while caller is not tensor.graph:
        setattr(caller, _HAS_REFS, True)
        caller = caller.outer_graph
    refs: dict[str, tf.Tensor] = getattr(graph, _REFS, {})
    setattr(graph, _REFS, refs)
    if tensor.name not in refs:
        clean = graph.control_dependencies(None)
        with graph.as_default(), clean, graph.control_dependencies(waits):
            refs[tensor.name] = tf.raw_ops.VariableV2(
                shape=variable.get_attr("shape"),
                dtype=tensor.dtype.base_dtype,
                shared_name=variable.name,
                name="ref",
            )
    return refs[tensor.name]


def _read_around(ref: tf.Tensor, variable: tf.Operation) -> tf.Tensor:
    """A read of a ref, in its graph, that functions take: the variable's own, or a new one."""
    around: dict[str, tf.Operation] = getattr(variable, graph_ops.READS_AROUND, {})
    setattr(variable, graph_ops.READS_AROUND, around)
    reads = (op for op in ref.consumers() if op.type == "Identity" and not op.control_inputs)
    read = next(reads, None)
    if read is None:
        graph = ref.graph
        with graph.as_default(), graph.name_scope(None), tf.control_dependencies(None):
            read = tf.identity(ref, name=f"{ref.op.name}/value").op
    around[read.name] = read
    return read.outputs[0]


def let_reads_fail_within(graph: tf.Graph) -> None:
    """Lets branches of a session take a variable without a value, which they might not use."""
    variables = [op for op in graph.get_operations() if hasattr(op, graph_ops.READS_AROUND)]
    reads = (getattr(op, graph_ops.READS_AROUND).values() for op in variables)
    for read in itertools.chain.from_iterable(reads):
        [taken], [ref] = read.outputs, read.inputs
        callers = [op for op in taken.consumers() if graph_ops.calls_functions(op)]
        scope = graph.name_scope(f"{read.name}/")
        with graph.as_default(), scope, tf.control_dependencies(None):
            known = tf.raw_ops.IsVariableInitialized(ref=ref)
            _, found = tf.raw_ops.RefSwitch(data=ref, pred=known)
            nothing, _ = tf.raw_ops.Switch(data=tf.zeros([], taken.dtype), pred=known)
            value, _ = tf.raw_ops.Merge(inputs=[tf.identity(found), nothing])
        for op in callers:
            for i, each in enumerate(op.inputs):
                if each is taken:
                    op._update_input(i, value)
