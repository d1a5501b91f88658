"""Functions of branches and loops that write to ref variables of the graph around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.engine.refs import aliases, ref_ops
from tpu_estimator_compat.engine.refs.conversion import (
    RESOURCE,
    Conversion,
    NodeDef,
    Read,
    Ref,
    output_name,
    set_inputs,
    waits,
)

FunctionDef = Any
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_TYPES = ("Tin", "T")
_INDICES = {"Reshape": "Tshape", "Shape": "out_type", "Slice": "Index"}
"""The attribute with the type of indices, by operation."""


class Functions:
    """The functions of a graph, and their conversions to resource variables.

    `made` has the converted functions since the list was last emptied.
    """

    def __init__(self) -> None:
        self.made: list[FunctionDef] = []
        self._functions: dict[str, FunctionDef] = {}
        self._written: dict[str, frozenset[str]] = {}
        self._count = 0

    def add(self, functions: Iterable[FunctionDef]) -> None:
        for function in functions:
            self._functions.setdefault(function.signature.name, function)

    def called_by(self, node: NodeDef) -> list[str]:
        names = [node.op, *(called.name for called in graph_def.called_by(node))]
        return [name for name in names if name in self._functions]

    def written_by(self, name: str) -> frozenset[str]:
        """The ref variables to which a function, or one that it calls, refers."""
        if name not in self._written:
            nodes = self._functions[name].node_def
            own = {n.attr["shared_name"].s.decode() for n in nodes if n.op in ref_ops.VARIABLES}
            inner = (self.written_by(other) for node in nodes for other in self.called_by(node))
            self._written[name] = frozenset(own).union(*inner)
        return self._written[name]

    def hands_on(self, loop: NodeDef, place: int) -> bool:
        """Whether a loop's body returns the argument `place` unchanged."""
        function = self._functions[loop.attr["body"].func.name]
        output = function.signature.output_arg[place].name
        return bool(function.ret[output] == function.signature.input_arg[place].name)

    def on_resources(self, name: str, arguments: Sequence[Ref | Read | None], loops: bool) -> str:
        """Converts the function `name` to one that takes handles; returns the new name.

        Args:
          arguments: for each argument, a Ref if it becomes a handle, a Read if it shares the memory
            of a variable whose handle is another argument, else None.
          loops: whether a loop runs it: each iteration follows the writes of the one before.
        """
        function = tf.compat.v1.GraphDef().library.function.add()
        function.CopyFrom(self._functions[name])
        signature = function.signature
        signature.name = f"{name}_on_resources_{self._count}"
        self._count += 1
        names = [argument.name for argument in signature.input_arg]
        conversion = _FunctionConversion(self, dict(zip(names, arguments, strict=True)), loops)
        nodes = list(conversion.convert(list(function.node_def)))
        del function.node_def[:]
        function.node_def.extend(nodes)
        for i, argument in enumerate(arguments):
            if isinstance(argument, Ref):
                signature.input_arg[i].type = RESOURCE
                function.arg_attr.pop(i, None)
        for output in signature.output_arg:
            ref = conversion.refs.get(function.ret[output.name])
            if ref is not None:
                returned = conversion.returned(ref, f"{output.name}/_returned", handle=loops)
                function.node_def.append(returned)
                function.ret[output.name] = f"{returned.name}:{output_name(returned)}:0"
                output.type = RESOURCE if loops else ref.dtype
        signature.is_stateful = True
        self._functions[signature.name] = function
        self.made.append(function)
        return str(signature.name)


class CallingConversion(Conversion):
    """A conversion of nodes that may call functions."""

    def __init__(self, functions: Functions, written_before: int = 0):
        super().__init__(written_before)
        self._functions = functions

    def call(self, node: NodeDef) -> list[NodeDef] | None:
        names = self._functions.called_by(node)
        written = frozenset[str]().union(*map(self._functions.written_by, names))
        if not written:
            return None
        if node.op not in {*names, *_BRANCHES, *_LOOPS, *_CALLS}:
            raise NotImplementedError(
                f"{node.name} ({node.op}) calls a function that writes to the ref variables "
                f"{sorted(written)}. Make them with use_resource=True, or set "
                'RunConfig(runtime="session").'
            )
        first = 1 if node.op in _BRANCHES else 0
        values = [i for i, each in enumerate(node.input) if not each.startswith("^")]
        refs = {i: ref for i in values if (ref := self._ref_behind(node.input[i]))}
        loops = node.op in _LOOPS
        same = [i for i in values[first:] if not loops or self._functions.hands_on(node, i)]
        handles = {i: refs[i] for i in same if i in refs and refs[i].variables <= written}
        added = self.looked_at(node, [i for i in values if i not in handles])
        reads = {i: self._alias(node.input[i], written) for i in same}
        arguments = [handles.get(i) or reads.get(i) for i in values[first:]]
        self.note_write(node, written)
        for i, ref in handles.items() if loops else ():  # a loop returns its arguments
            self.refs[self.output(node, i, "output", i)] = dataclasses.replace(ref, after=node.name)
        renamed = {n: self._functions.on_resources(n, arguments, loops) for n in names}
        _call_on_resources(node, renamed, [i - first for i in handles])
        inputs = list(node.input)
        for i, ref in handles.items():
            inputs[i] = ref.handle
        set_inputs(node, [*inputs, *waits(handles.values())])
        return [*added, node]

    def note_aliases(self, node: NodeDef, shapes: Sequence[aliases.Shape]) -> None:
        """Notes also arguments that a loop returns unchanged: gradients read the loop's outputs."""
        super().note_aliases(node, shapes)
        for i, each in enumerate(node.input if node.op in _LOOPS else ()):
            if each in self.reads and self._functions.hands_on(node, i):
                self.reads[self.output(node, i, "output", i)] = self.reads[each]

    def _ref_behind(self, edge: str) -> Ref | None:
        """The ref that is the input, or of which the input is a plain read."""
        read = self.reads.get(edge)
        return read.ref if read is not None and read.alias is None else self.refs.get(edge)

    def _alias(self, edge: str, written: frozenset[str]) -> Read | None:
        read = self.reads.get(edge)
        return read if read and read.ref.variables <= written else None


class _FunctionConversion(CallingConversion):
    has_plain_outputs = False

    def __init__(self, functions: Functions, arguments: dict[str, Ref | Read | None], loops: bool):
        super().__init__(functions, written_before=1 if loops else 0)
        for name, argument in arguments.items():
            if isinstance(argument, Ref):
                self.refs[name] = dataclasses.replace(argument, handle=name, after="")
                for variable in argument.variables if loops else ():
                    self.note_earlier_write(variable)
        self._handles = {v: ref for ref in self.refs.values() for v in ref.variables}
        self._added: list[NodeDef] = []
        for name, argument in arguments.items():
            if isinstance(argument, Read) and argument.begin is not None:
                self.reads[name] = self._part(name, argument, argument.begin)

    def convert(self, nodes: Iterable[NodeDef]) -> Iterator[NodeDef]:
        yield from self._added
        yield from super().convert(nodes)

    def _part(self, name: str, argument: Read, first: int) -> Read:
        """The Read for an argument that shares a variable's memory from element `first` on."""
        [variable] = argument.ref.variables
        ref = self._handles[variable]

        def node(op: str, key: str, *inputs: str) -> NodeDef:
            return _on_indices(op, f"{name}/_{key}", inputs, ref.dtype)

        def added(node: NodeDef) -> str:
            self._added.append(node)
            return f"{node.name}:output:0"

        flat = added(_constant(f"{name}/_flat", -1))
        begin = added(_constant(f"{name}/_begin", first))
        size = added(node("Shape", "size", added(node("Reshape", "row", name, flat))))
        shape = added(node("Shape", "shape", name))
        read = Read(ref, 0, ref.shape)
        for alias in (
            node("Reshape", "memory", name, flat),
            node("Slice", "part", name, begin, size),
            node("Reshape", "shaped", name, shape),
        ):
            read = dataclasses.replace(read, alias=alias, source=read)
        return dataclasses.replace(read, shape=argument.shape, begin=first)

    def returned(self, ref: Ref, name: str, handle: bool) -> NodeDef:
        """A node for a function's output: a variable's handle or value, after all writes.

        A loop's body returns the handle, so that the next iteration waits for the writes.
        """
        node = tf.compat.v1.NodeDef(op="Identity" if handle else "ReadVariableOp", name=name)
        node.attr["T" if handle else "dtype"].type = RESOURCE if handle else ref.dtype
        writers = [f"^{writer}" for v in ref.variables for writer in self.writers.get(v, ())]
        set_inputs(node, [ref.handle, *writers])
        return node

    def variable(self, node: NodeDef) -> list[NodeDef]:
        """Returns no node: the variable's handle is an argument of the function."""
        ref = self._handles[node.attr["shared_name"].s.decode()]
        self.refs[self.output(node, 0, "ref")] = ref
        return []

    def output(self, node: NodeDef, place: int, name: str, part: int = 0) -> str:
        return f"{node.name}:{name}:{part}"


def _on_indices(op: str, name: str, inputs: Sequence[str], dtype: int) -> NodeDef:
    node = tf.compat.v1.NodeDef(op=op, name=name, input=inputs)
    node.attr["T"].type = dtype
    node.attr[_INDICES[op]].type = tf.int64.as_datatype_enum
    return node


def _constant(name: str, value: int) -> NodeDef:
    node = tf.compat.v1.NodeDef(op="Const", name=name)
    node.attr["dtype"].type = tf.int64.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([value], tf.int64))
    return node


def _call_on_resources(node: NodeDef, renamed: dict[str, str], handles: Iterable[int]) -> None:
    node.op = renamed.get(node.op, node.op).removeprefix("Stateless")
    for called in graph_def.called_by(node):
        called.name = renamed.get(called.name, called.name)
    types = next((node.attr[name].list for name in _TYPES if name in node.attr), None)
    for i in handles:
        if types is not None:
            types.type[i] = RESOURCE
        if node.op in _LOOPS and "output_shapes" in node.attr:
            node.attr["output_shapes"].list.shape[i].Clear()
