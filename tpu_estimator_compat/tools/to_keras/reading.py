"""Reads a TensorFlow graph into a `Program`: functions inlined, variables and constants values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.graph.graph_ops import is_variable_handle
from tpu_estimator_compat.tf_internals import function_def_to_graph
from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    INPUT,
    LABEL,
    WEIGHT,
    Node,
    Program,
    Value,
    Weight,
)

_SAME = frozenset(
    {
        "CheckNumerics",
        "EnsureShape",
        "Identity",
        "PlaceholderWithDefault",
        "PreventGradient",
        "ReadVariableOp",
        "Snapshot",
        "StopGradient",
    }
)
"""Operations whose value is that of their input, in a program without gradients of its own."""
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


def read(
    graph: tf.Graph,
    inputs: Mapping[str, tf.Tensor],
    outputs: Mapping[str, tf.Tensor],
    weights: Mapping[str, Weight],
    labels: Mapping[str, tf.Tensor] | None = None,
) -> Program:
    """The program that computes `outputs` of a graph.

    Args:
      inputs, labels: by name, the tensors where the program begins.
      weights: by the variable's name.
    """
    reader = _Reader(graph, weights)
    program = Program({}, {})
    given = [(INPUT, inputs, program.inputs), (LABEL, labels or {}, program.labels)]
    for kind, tensors, values in given:
        for key, tensor in tensors.items():
            node = Node(kind, tensor.op.name, attrs={"key": key})
            values[key] = node.output(shape_of(tensor), tensor.dtype.base_dtype.name)
            reader.values[tensor.ref()] = values[key]
    program.outputs = dict(zip(outputs, reader.read(list(outputs.values())), strict=True))
    return program


def shape_of(tensor: tf.Tensor) -> tuple[int | None, ...] | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


class _Reader:
    """Reads the operations of one graph, or of one call of a function, whose names get `prefix`."""

    def __init__(self, graph: tf.Graph, weights: Mapping[str, Weight], prefix: str = ""):
        self._graph, self._weights, self._prefix = graph, weights, prefix
        self.values: dict[Any, Value] = {}

    def read(self, tensors: list[tf.Tensor]) -> list[Value]:
        order = {op: i for i, op in enumerate(self._graph.get_operations())}
        for op in sorted(self._needed(tensors), key=order.__getitem__):
            if all(tensor.ref() not in self.values for tensor in op.outputs):
                made = self._convert(op, [self.values[tensor.ref()] for tensor in op.inputs])
                self.values.update({t.ref(): v for t, v in zip(op.outputs, made, strict=True)})
        return [self.values[tensor.ref()] for tensor in tensors]

    def _needed(self, tensors: list[tf.Tensor]) -> set[tf.Operation]:
        seen: set[tf.Operation] = set()
        stack = [tensor.op for tensor in tensors if tensor.ref() not in self.values]
        while stack:
            op = stack.pop()
            if op not in seen:
                seen.add(op)
                stack += [tensor.op for tensor in op.inputs if tensor.ref() not in self.values]
        return seen

    def _convert(self, op: tf.Operation, inputs: list[Value]) -> list[Value]:
        if is_variable_handle(op):
            return [self._weight(op)]
        if op.type in _SAME or (op.type == "IdentityN" and len(inputs) == len(op.outputs)):
            return inputs[: len(op.outputs)]
        if op.type in _CALLS:
            return self._inlined(op, inputs)
        node = Node(op.type, self._prefix + op.name, inputs, place=_place(op))
        for tensor in op.outputs:
            node.output(shape_of(tensor), tensor.dtype.base_dtype.name)
        if op.type == "Const":
            node.kind, node.attrs = CONSTANT, {"value": tf.make_ndarray(op.get_attr("value"))}
            return node.outputs
        node.attrs = {name: _plain(op.get_attr(name)) for name in op.node_def.attr}
        self._add_bodies(node, op)
        return _on_weights(node)

    def _weight(self, op: tf.Operation) -> Value:
        weight = self._weights.get(op.name)
        if weight is None:
            raise ValueError(f"The graph uses the variable {op.name!r}, which has no value.")
        node = Node(WEIGHT, op.name, attrs={"weight": weight}, place=_place(op))
        return node.output(weight.shape, weight.dtype)

    def _inlined(self, op: tf.Operation, inputs: list[Value]) -> list[Value]:
        body = self._body(op.get_attr("f").name)
        called = _Reader(body, self._weights, f"{self._prefix}{op.name}/")
        called.values = {t.ref(): v for t, v in zip(body.inputs, inputs, strict=True)}
        return called.read(body.outputs)

    def _body(self, name: str) -> Any:
        found = sources.function_graph(self._graph, name)
        if found is None:  # a SavedModel's
            definition = self._graph._get_function(name).cached_definition
            with self._graph.as_default():
                found = function_def_to_graph(definition)
        return found

    def _add_bodies(self, node: Node, op: tf.Operation) -> None:
        for attribute in op.node_def.attr:
            function = op.get_attr(attribute)
            if not hasattr(function, "name") or not hasattr(function, "attr"):
                continue
            body = self._body(function.name)
            given = node.inputs[len(node.inputs) - len(body.inputs) :]  # not a branch's condition
            reader = _Reader(body, self._weights, f"{node.name}/{attribute}/")
            inside = Program({}, {})
            for i, (tensor, outer) in enumerate(zip(body.inputs, given, strict=True)):
                if outer.node.kind in (WEIGHT, CONSTANT) and op.type in ("If", "StatelessIf"):
                    reader.values[tensor.ref()] = outer
                    continue
                own = Node(INPUT, tensor.op.name, attrs={"key": str(i)})
                inside.inputs[str(i)] = own.output(outer.shape, outer.dtype)
                reader.values[tensor.ref()] = inside.inputs[str(i)]
            results = reader.read(body.outputs)
            inside.outputs = {str(i): value for i, value in enumerate(results)}
            node.bodies[attribute] = inside


def _on_weights(node: Node) -> list[Value]:
    """The same of plain values, where the operation takes a variable's handle."""
    if node.kind == "ResourceGather":
        axis = np.int32(node.attrs.get("batch_dims", 0))
        axis_node = Node(CONSTANT, node.name + "/axis", attrs={"value": axis})
        node.kind = "GatherV2"
        node.inputs.append(axis_node.output((), "int32"))
    if node.kind == "ResourceGatherNd":
        node.kind = "GatherNd"
    return node.outputs


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, tf.DType):
        return value.base_dtype.name
    if hasattr(value, "dim") and hasattr(value, "unknown_rank"):
        return None if value.unknown_rank else tuple(d.size for d in value.dim)
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _place(op: tf.Operation) -> str:
    return str(sources.of_operation(op) or "")
