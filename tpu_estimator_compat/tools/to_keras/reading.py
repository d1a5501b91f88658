"""Reads a TensorFlow graph into a `Program`: functions inlined, variables and constants values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.graph import sources
from tpu_estimator_compat.engine.graph.graph_ops import is_variable_handle
from tpu_estimator_compat.engine.step.collectives import SUMS
from tpu_estimator_compat.tf_internals import function_def_to_graph
from tpu_estimator_compat.tools.to_keras import control_flow
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.control_flow import Section
from tpu_estimator_compat.tools.to_keras.graph import Node, Program, Value, Weight

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
    | SUMS  # of one replica
)
"""Operations whose value is that of their input, in a program without gradients of its own."""
_TWINS = {
    "Add": "AddV2",
    "BatchMatMul": "BatchMatMulV2",
    "BatchMatMulV3": "BatchMatMulV2",
    "FusedBatchNorm": "FusedBatchNormV3",
    "FusedBatchNormV2": "FusedBatchNormV3",
    "Merge": g.BRANCH,
    "ResourceGather": "GatherV2",
    "ResourceGatherNd": "GatherNd",
    "StatelessIf": g.BRANCH,
    "StatelessWhile": g.LOOP,
}
"""Operations that do the same as another one, some with a variable in place of its value."""
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BODIES = ("cond", "body", "then_branch", "else_branch")


def read(
    graph: tf.Graph,
    inputs: Mapping[str, tf.Tensor],
    outputs: Mapping[str, tf.Tensor],
    weights: Mapping[str, Weight],
    labels: Mapping[str, tf.Tensor] | None = None,
    *,
    stops: bool = False,
) -> Program:
    """The program that computes `outputs` of a graph.

    Args:
      inputs, labels: by name, the tensors where the program begins.
      weights: by the variable's name.
      stops: whether operations that stop gradients are nodes, outside of functions.
    """
    reader = _Reader(graph, weights)
    reader.stops = stops
    program = Program({}, {})
    given = [(g.INPUT, inputs, program.inputs), (g.LABEL, labels or {}, program.labels)]
    for kind, tensors, values in given:
        for key, tensor in tensors.items():
            node = Node(kind, tensor.op.name, attrs={"key": key})
            values[key] = node.output(shape_of(tensor), tensor.dtype.base_dtype.name)
            reader.values[tensor.ref()] = values[key]
    program.outputs = dict(zip(outputs, reader.read(list(outputs.values())), strict=True))
    return program


def computed(function: Callable[..., tf.Tensor], *values: Value, name: str) -> Value:
    """What a function of TensorFlow makes of values, as operations of their program."""
    with tf.Graph().as_default() as graph, tf.name_scope(name):
        placeholder = tf.compat.v1.placeholder
        inputs = {str(i): placeholder(v.dtype, v.shape) for i, v in enumerate(values)}
        part = read(graph, inputs, {"made": function(*inputs.values())}, {})
    given = dict(zip(part.inputs.values(), values, strict=True))
    for node in part.nodes():
        node.place = ""
        node.inputs = [given.get(value, value) for value in node.inputs]
    return given.get(part.outputs["made"], part.outputs["made"])


def shape_of(tensor: tf.Tensor) -> tuple[int | None, ...] | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


class _Reader:
    """Reads the operations of one graph, or of one call of a function, whose names get `prefix`."""

    def __init__(
        self,
        graph: tf.Graph,
        weights: Mapping[str, Weight],
        prefix: str = "",
        library: tf.Graph | None = None,
    ):
        self._graph, self._weights, self._prefix = graph, weights, prefix
        self._library = library or graph
        self.values: dict[Any, Value] = {}
        self._loops: dict[str, list[Value]] = {}
        self.stops = False

    def read(self, tensors: list[tf.Tensor]) -> list[Value]:
        ops = (tensor.op for tensor in tensors if tensor.ref() not in self.values)
        for op in g.in_order(ops, self._before):
            if all(tensor.ref() not in self.values for tensor in op.outputs):
                made = self._convert(op, [self.values[tensor.ref()] for tensor in _taken(op)])
                self.values.update({t.ref(): v for t, v in zip(op.outputs, made, strict=False)})
        return [self.values[tensor.ref()] for tensor in tensors]

    def _before(self, op: tf.Operation) -> list[tf.Operation]:
        return [tensor.op for tensor in _taken(op) if tensor.ref() not in self.values]

    def _convert(self, op: tf.Operation, inputs: list[Value]) -> list[Value]:
        if is_variable_handle(op):
            return [self._weight(op)]
        is_stop = self.stops and op.type == "StopGradient"
        if (op.type in _SAME and not is_stop) or (
            op.type == "IdentityN" and len(inputs) == len(op.outputs)
        ):
            return inputs[: len(op.outputs)]
        if op.type in _CALLS:
            return self._inlined(op, inputs)
        node = Node(op.type, self._prefix + op.name, inputs, place=_place(op))
        if op.type != "Add" or op.outputs[0].dtype != tf.string:  # which AddV2 takes not
            node.kind = _TWINS.get(op.type, op.type)
        if op.type == "Exit":
            return self._exit(op, node)
        for tensor in op.outputs:
            node.output(shape_of(tensor), tensor.dtype.base_dtype.name)
        if op.type == "Const":
            node.kind, node.attrs = g.CONSTANT, {"value": tf.make_ndarray(op.get_attr("value"))}
            return node.outputs
        named = sorted(op.node_def.attr)  # the order of a message's map differs between runs
        node.attrs = {name: _plain(op.get_attr(name)) for name in named}
        if op.type == "Merge":
            node.outputs = node.outputs[:1]
            return self._add_bodies(node, control_flow.branch(op).sections)
        if op.type == "ResourceGather":
            node.inputs.append(g.constant(np.int32(node.attrs.get("batch_dims", 0))))
        if node.kind in (g.BRANCH, g.LOOP):
            sections = {
                name: self._section(op, name) for name in _BODIES if name in op.node_def.attr
            }
            return self._add_bodies(node, sections)
        return node.outputs

    def _exit(self, op: tf.Operation, node: Node) -> list[Value]:
        """A loop's result, of a loop that becomes one node."""
        frame = control_flow.frame(op)
        if frame.name not in self._loops:
            node.kind, node.name = g.LOOP, self._prefix + frame.name
            for tensor in frame.sections["body"].outputs:
                node.output(shape_of(tensor), tensor.dtype.base_dtype.name)
            self._loops[frame.name] = self._add_bodies(node, frame.sections)
        return [self._loops[frame.name][frame.index]]

    def _section(self, op: tf.Operation, attribute: str) -> Section:
        body = self._body(op.get_attr(attribute).name)
        return Section(body, list(body.inputs), list(body.outputs))

    def _weight(self, op: tf.Operation) -> Value:
        weight = self._weights.get(op.name)
        if weight is None:
            raise ValueError(f"The graph uses the variable {op.name!r}, which has no value.")
        node = Node(g.WEIGHT, op.name, attrs={"weight": weight}, place=_place(op))
        return node.output(weight.shape, weight.dtype)

    def _inlined(self, op: tf.Operation, inputs: list[Value]) -> list[Value]:
        body = self._body(op.get_attr("f").name)
        called = _Reader(body, self._weights, f"{self._prefix}{op.name}/", self._library)
        called.values = {t.ref(): v for t, v in zip(body.inputs, inputs, strict=True)}
        return called.read(body.outputs)

    def _body(self, name: str) -> Any:
        found = sources.function_graph(self._graph, name)
        known = self._library._get_function(name)
        # A SavedModel's has no graph, and gradients add to the graph of a loop's, afterwards.
        if found is None or (known and len(found.inputs) != len(known.function_type.parameters)):
            with self._library.as_default():
                found = function_def_to_graph(known.cached_definition)
        return found

    def _add_bodies(self, node: Node, sections: dict[str, Section]) -> list[Value]:
        """Reads what a branch or loop runs; the values that stand for its outputs.

        Its bodies name weights and constants themselves, which are given up as inputs.
        """
        loops = "body" in sections
        first, given = ([], node.inputs) if loops else (node.inputs[:1], node.inputs[1:])
        named = {
            i
            for i, value in enumerate(given)
            if value.node.kind in (g.WEIGHT, g.CONSTANT)
            and (not loops or sections["body"].keeps(i))
        }
        left = [i for i in range(len(given)) if i not in named]
        for attribute, section in sections.items():
            apart = section.graph is not self._graph
            prefix = f"{node.name}/{attribute}/" if apart else self._prefix
            reader = _Reader(section.graph, self._weights, prefix, self._library)
            inside = node.bodies[attribute] = Program({}, {})
            for i, (tensor, outer) in enumerate(zip(section.inputs, given, strict=True)):
                if tensor is None:
                    continue
                value = outer
                if i in left:
                    own = Node(g.INPUT, tensor.op.name, attrs={"key": str(left.index(i))})
                    value = own.output(outer.shape, outer.dtype)
                    inside.inputs[own.attrs["key"]] = value
                reader.values[tensor.ref()] = value
            wanted = section.outputs if attribute != "body" else [section.outputs[i] for i in left]
            inside.outputs = {str(i): value for i, value in enumerate(reader.read(wanted))}
        node.inputs = [*first, *(given[i] for i in left)]
        if not loops:
            return node.outputs
        outputs = [given[i] if i in named else value for i, value in enumerate(node.outputs)]
        node.keep_outputs(left)
        return outputs


def _taken(op: tf.Operation) -> list[tf.Tensor]:
    """What an operation takes; a loop or branch of TensorFlow 1 as a whole."""
    if op.type == "Exit":
        return control_flow.frame(op).given
    if op.type == "Merge":
        branch = control_flow.branch(op)
        return [branch.condition, *branch.given]
    return list(op.inputs)


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
