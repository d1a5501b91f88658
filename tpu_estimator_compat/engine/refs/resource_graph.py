"""The graph on resource variables that computes the same as a captured graph with ref variables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_ops
from tpu_estimator_compat.engine.refs import ref_ops
from tpu_estimator_compat.engine.refs.conversion import Conversion, NodeDef, Ref, producer

_OWN = "_on_resources"


def of(graph: tf.Graph) -> ResourceGraph:
    """The ResourceGraph of `graph`, up to date with all operations of `graph`."""
    found: ResourceGraph | None = getattr(graph, _OWN, None)
    if found is None:
        found = ResourceGraph(graph)
        setattr(graph, _OWN, found)
    found.follow(graph)
    return found


@contextlib.contextmanager
def apart(graph: tf.Graph) -> Iterator[None]:
    """A context in which operations can be added to `graph` that will not be converted.

    Such as gradients: those of a loop give the loop new outputs, which its counterpart has not.
    """
    found = of(graph)
    yield
    found._version, found._followed = graph.version, len(graph.get_operations())


def for_sessions(graph: tf.Graph) -> dict[str, str]:
    """Names of operations that only sessions run as TensorFlow 1 did, each with the reason."""
    operations = graph.get_operations()
    if not any(op.type in ref_ops.VARIABLES for op in operations):
        return {}
    conversion = Conversion()
    for _ in conversion.convert(graph.as_graph_def().node, operations):
        pass
    return conversion.for_sessions


class ResourceGraph:
    """A graph that computes the same as another, under the same names, on resource variables.

    `graph` is the other graph itself where that has no ref variables.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self.graph = graph
        self._has_refs = False
        self._version = -1
        self._followed = 0
        self._conversion = Conversion()
        self._reads: dict[str, tf.Tensor] = {}

    def follow(self, graph: tf.Graph) -> None:
        """Converts the operations that were added to `graph` since the last call."""
        if graph.version == self._version:
            return
        self._version = graph.version
        operations = graph.get_operations()
        new = operations[self._followed :]
        self._followed = len(operations)
        if not self._has_refs:
            if not any(op.type in ref_ops.VARIABLES for op in new):
                return
            self._has_refs = True
            self.graph, new = tf.Graph(), operations
        self._import(graph, new)

    def tensor(self, tensor: tf.Tensor) -> tf.Tensor:
        """The counterpart of a tensor of the other graph; for a ref, the variable's value."""
        if not self._has_refs:
            return tensor
        ref = self._conversion.refs.get(tensor.name.removesuffix(":0"))
        if ref is not None:
            return self._value(tensor, ref)
        return self.graph.get_tensor_by_name(tensor.name)

    def memory_of(self, tensor: tf.Tensor) -> tf.Tensor | None:
        """The handle of the ref variable whose whole memory `tensor` shares; None for others.

        A fetch of such a tensor gives what the memory holds when all operations have run.
        """
        name = tensor.name.removesuffix(":0")
        read = self._conversion.reads.get(name)
        ref = read.ref if read and read.is_whole else self._conversion.refs.get(name)
        return None if ref is None else self._output(ref.variable)

    def fed(self, tensor: tf.Tensor) -> list[tf.Tensor]:
        """The counterparts to feed for `tensor`; for a ref, all plain reads of the variable."""
        if not self._has_refs:
            return [tensor]
        name = tensor.name.removesuffix(":0")
        ref = self._conversion.refs.get(name)
        if ref is None:
            return [self.graph.get_tensor_by_name(tensor.name)]
        reads = [n for n, read in self._conversion.reads.items() if read.ref == ref]
        plain = [each for each in map(self._output, reads) if each.op.type == "ReadVariableOp"]
        return [*plain, self._value(tensor, ref)]

    def operation(self, operation: tf.Operation) -> tf.Operation:
        return self._operation(operation.name) if self._has_refs else operation

    def check(self, operations: Iterable[tf.Operation]) -> None:
        """Raises NotImplementedError, in words, if only sessions run an operation exactly."""
        reasons = self._conversion.for_sessions
        for op in operations if reasons else ():
            if reason := reasons.get(op.name):
                raise NotImplementedError(
                    f"{op.name} ({op.type}) {reason}. Make the variable with use_resource=True, or "
                    'set RunConfig(runtime="session").'
                )

    def _value(self, tensor: tf.Tensor, ref: Ref) -> tf.Tensor:
        known = self._reads.get(tensor.name)
        if known is None:
            after = [self._operation(ref.after)] if ref.after else []
            with self.graph.as_default(), tf.control_dependencies(after):
                known = tf.raw_ops.ReadVariableOp(
                    resource=self._output(ref.variable),
                    dtype=tensor.dtype.base_dtype,
                    name=f"{tensor.op.name}/_value",
                )
            self._reads[tensor.name] = known
        return known

    def _import(self, graph: tf.Graph, operations: Sequence[tf.Operation]) -> None:
        names = {op.name for op in operations}
        source = graph.as_graph_def()
        nodes = [node for node in source.node if node.name in names]
        shaped_anew = {node.input[0] for node in nodes if _gives_a_shape(node)}
        for node in nodes:
            node.device = ""
            node.attr.pop("_class", None)
            if node.op in ref_ops.VARIABLES and node.name in shaped_anew:
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(None).as_proto())
        definition = tf.compat.v1.GraphDef()
        definition.versions.CopyFrom(source.versions)
        definition.node.extend(self._conversion.convert(nodes, operations))
        own = self.graph
        for function in list(graph._functions.values()):
            own._add_function_recursive(function)
        known, waits = self._cut_off(definition)
        with own.as_default():
            tf.graph_util.import_graph_def(definition, input_map=known, name="")
        for name, before in waits.items():
            own.get_operation_by_name(name)._add_control_inputs(before)
        for op in operations:
            graph_ops.note_original(own.get_operation_by_name(op.name), op)

    def _cut_off(
        self, definition: Any
    ) -> tuple[dict[str, tf.Tensor], dict[str, list[tf.Operation]]]:
        """The input tensors, and control inputs, that new nodes take from the existing graph.

        TensorFlow's import maps tensors only, so the control inputs are removed from the nodes.
        """
        new = {node.name for node in definition.node}
        known: dict[str, tf.Tensor] = {}
        waits: dict[str, list[tf.Operation]] = {}
        for node in definition.node:
            old = [each for each in node.input if producer(each) not in new]
            if not old:
                continue
            before = [self._operation(producer(each)) for each in old if each.startswith("^")]
            known |= {each: self._output(each) for each in old if not each.startswith("^")}
            if before:
                waits[node.name] = before
                kept = [e for e in node.input if not e.startswith("^") or producer(e) in new]
                del node.input[:]
                node.input.extend(kept)
        return known, waits

    def _output(self, edge: str) -> tf.Tensor:
        return self.graph.get_tensor_by_name(edge if ":" in edge else f"{edge}:0")

    def _operation(self, name: str) -> tf.Operation:
        return self.graph.get_operation_by_name(name)


def _gives_a_shape(node: NodeDef) -> bool:
    """Whether a node may assign a value of another shape than the variable's."""
    return node.op == "Assign" and not node.attr["validate_shape"].b
