"""Preflight's first depth: finds faults in the captured graph, without lowering it.

XLA stops at the first op without a kernel; the scan lists all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.engine.graph import graph_def, graph_ops, sources
from tpu_estimator_compat.engine.jax.lowering import replacements, xla_collectives
from tpu_estimator_compat.engine.jax.lowering.findings import Finding, Kind, Severity, advice
from tpu_estimator_compat.engine.jax.lowering.replica_step import ReplicaStep
from tpu_estimator_compat.engine.step import collectives
from tpu_estimator_compat.tf_internals import kernels

_HANDLES = frozenset({"Placeholder", "PlaceholderWithDefault"})
_OPAQUE = (tf.resource, tf.variant)


def scan(step: ReplicaStep) -> list[Finding]:
    """The findings in the graph of a step, certain ones first."""
    found = [*_inputs(step), *_variables(step), *_of_ops(step.ops, set())]
    found += [_not_on_tpu(op, "It lives on the host.") for op in step.resources]
    return sorted(found, key=lambda finding: finding.severity is not Severity.FAILS)


@functools.cache
def supported_ops() -> frozenset[str]:
    """Types of the ops for which the installed TensorFlow registers XLA kernels."""
    # The first compilation of a process registers them.
    with eager.eager_mode():
        tiny = tf.function(lambda x: x + 1, jit_compile=True)
        tiny.experimental_get_compiler_ir(tf.TensorSpec([2]))(stage="hlo")
    found = kernels.get_all_registered_kernels().kernel
    return frozenset(kernel.op for kernel in found if kernel.device_type == "XLA_CPU_JIT")


def _inputs(step: ReplicaStep) -> Iterator[Finding]:
    for name, tensor in zip(step.feed_names, step.feeds, strict=True):
        if tensor.dtype == tf.string:
            yield Finding(
                Severity.FAILS,
                Kind.STRING,
                f"input_fn gives strings: {name} of shape {tensor.shape}.",
                "drop it in input_fn, or turn it into integers there",
            )


def _variables(step: ReplicaStep) -> Iterator[Finding]:
    for op in step.variables:
        shape = tf.TensorShape(op.get_attr("shape"))
        if not shape.is_fully_defined():
            yield Finding(
                Severity.FAILS,
                Kind.DYNAMIC_SHAPE,
                f"Variable {op.name} has no static shape: {shape}.",
                "create it with a shape, and without validate_shape=False",
                op.type,
                op.name,
                sources.of_operation(op),
            )


def _of_ops(ops: Sequence[tf.Operation], seen: set[str]) -> list[Finding]:
    """The findings in `ops`, in creation order, and in their functions that are not yet `seen`."""
    found: list[Finding] = []
    behind: set[tf.Operation] = set()  # downstream of a dynamic shape, which is reported once
    for op in ops:
        is_behind = any(t.op in behind for t in op.inputs)
        of_op = _of_function(op, seen) or _of_op(op, is_behind)
        found += of_op
        # The replaced `Unique` returns one row per id: no finding, but its static shape is unknown.
        dynamic = (of_op and not _is_static(op.outputs)) or replacements.is_replaced(op)
        if is_behind or dynamic:
            behind.add(op)
    return found


def _of_function(op: tf.Operation, seen: set[str]) -> list[Finding]:
    if not graph_ops.calls_functions(op):
        return []
    found: list[Finding] = []
    for name in graph_def.called_functions(op):
        inner = sources.function_graph(op.graph, name)
        if inner is not None and name not in seen:
            seen.add(name)
            found += _of_ops(inner.get_operations(), seen)
    return found


def _of_op(op: tf.Operation, behind: bool) -> list[Finding]:
    if op.type in _HANDLES or op.type in collectives.OP_TYPES or graph_ops.is_handle(op):
        return []
    if replacements.is_replaced(op):
        return []
    if op.type in xla_collectives.TPU_ONLY:
        why = f"{op.type} exists on a TPU, but cannot be checked without one."
        return [_finding(op, Severity.MIGHT, Kind.UNSUPPORTED_OP, why)]
    if op.type not in supported_ops() and not sources.is_function(op):
        return [_not_on_tpu(op, "XLA has no kernel for it.")]
    if op.type != "Const" and any(t.dtype == tf.string for t in op.outputs):
        return [_not_on_tpu(op, "It makes strings, which a TPU does not have.", Kind.STRING)]
    if _is_static(op.outputs):
        return []
    row = advice(op.type)
    depends_on_data = row is not None and row.kind is Kind.DYNAMIC_SHAPE
    if depends_on_data or (not behind and _is_static(op.inputs)):
        return [_dynamic(op)]
    return []


def _is_static(tensors: Iterable[tf.Tensor]) -> bool:
    return all(t.shape.is_fully_defined() for t in tensors if t.dtype not in _OPAQUE)


def _dynamic(op: tf.Operation) -> Finding:
    shapes = ", ".join(str(t.shape) for t in op.outputs if not t.shape.is_fully_defined())
    why = (
        f"The shape of its result depends on data: {shapes}. A TPU computes with the largest "
        "possible one, or refuses."
    )
    return _finding(op, Severity.MIGHT, Kind.DYNAMIC_SHAPE, why)


def _not_on_tpu(op: tf.Operation, why: str, kind: Kind = Kind.UNSUPPORTED_OP) -> Finding:
    row = advice(op.type)
    message = f"{op.type} does not run on a TPU. {why}"
    return _finding(op, Severity.FAILS, row.kind if row else kind, message)


def _finding(op: tf.Operation, severity: Severity, kind: Kind, message: str) -> Finding:
    row = advice(op.type)
    text = row.text if row else ""
    return Finding(severity, kind, message, text, op.type, op.name, sources.of_operation(op))
