"""Functions of branches and loops that write to ref variables of the graph around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def
from tpu_estimator_compat.engine.refs import ref_ops
from tpu_estimator_compat.engine.refs.conversion import (
    RESOURCE,
    Conversion,
    NodeDef,
    Read,
    Ref,
    set_inputs,
    waits,
)

FunctionDef = Any
_BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
_LOOPS = frozenset({"While", "StatelessWhile"})
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_TYPES = ("Tin", "T")
_INDEX = tf.int64.as_datatype_enum


class Functions:
    """The functions of a graph, and those that were made of them.

    Attributes:
      made: functions that write to resource variables, made since the list was last emptied.
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
        """The ref variables that a function, or one that it calls, has a ref of."""
        if name not in self._written:
            nodes = self._functions[name].node_def
            own = {n.attr["shared_name"].s.decode() for n in nodes if n.op in ref_ops.VARIABLES}
            inner = (self.written_by(other) for node in nodes for other in self.called_by(node))
            self._written[name] = frozenset(own).union(*inner)
        return self._written[name]

    def hands_on(self, loop: NodeDef, place: int) -> bool:
        """Whether a loop's body returns an argument as it is."""
        function = self._functions[loop.attr["body"].func.name]
        output = function.signature.output_arg[place].name
        return bool(function.ret[output] == function.signature.input_arg[place].name)

    def on_resources(self, name: str, arguments: Sequence[Ref | Read | None], loops: bool) -> str:
        """The name of a function that does what `name` does, with handles for arguments.

        Args:
          arguments: for each argument, what it is if it becomes a handle, or shares the memory of a
            variable whose handle is another argument.
          loops: whether it runs several times: its first node follows its last one's writes.
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
        for output in signature.output_arg if loops else ():
            ref = conversion.refs.get(function.ret[output.name])
            if ref is not None:
                output.type = RESOURCE
                function.ret[output.name] = conversion.handed_on(ref, function)
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
                f"{sorted(written)}. Make them with use_resource=True."
            )
        first = 1 if node.op in _BRANCHES else 0
        values = [i for i, each in enumerate(node.input) if not each.startswith("^")]
        refs = {i: ref for i in values if (ref := self._ref_behind(node.input[i]))}
        loops = node.op in _LOOPS
        same = [i for i in values[first:] if not loops or self._functions.hands_on(node, i)]
        handles = {i: refs[i] for i in same if i in refs and refs[i].variables <= written}
        added = self.looked_at(node, [i for i in values if i not in handles])
        aliases = {i: self._alias(node.input[i], written) for i in same}
        arguments = [handles.get(i) or aliases.get(i) for i in values[first:]]
        self.note_write(node, written)
        for i, ref in handles.items() if loops else ():  # a loop returns what it takes
            self.refs[self.output(node, i, "output", i)] = dataclasses.replace(ref, after=node.name)
        renamed = {n: self._functions.on_resources(n, arguments, loops) for n in names}
        _call_on_resources(node, renamed, [i - first for i in handles])
        inputs = list(node.input)
        for i, ref in handles.items():
            inputs[i] = ref.handle
        set_inputs(node, [*inputs, *waits(handles.values())])
        return [*added, node]

    def _ref_behind(self, edge: str) -> Ref | None:
        """The ref that an input is, or is a plain read of."""
        read = self.reads.get(edge)
        return read.ref if read is not None and read.alias is None else self.refs.get(edge)

    def _alias(self, edge: str, written: frozenset[str]) -> Read | None:
        read = self.reads.get(edge)
        known = read is not None and read.begin is not None and read.ref.variables <= written
        return read if known else None


class _FunctionConversion(CallingConversion):
    """The conversion of a function."""

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
            if isinstance(argument, Read):
                [variable] = argument.ref.variables
                self.reads[name] = self._part(name, argument, self._handles[variable])

    def convert(self, nodes: Iterable[NodeDef]) -> Iterator[NodeDef]:
        yield from self._added
        yield from super().convert(nodes)

    def _part(self, name: str, argument: Read, ref: Ref) -> Read:
        """An argument that shares a variable's memory, as a part of it in the argument's shape."""
        kept = {"T": argument.ref.dtype}
        flat = _node("Const", f"{name}/_flat", [], dtype=_INDEX)
        begin = _node("Const", f"{name}/_begin", [], dtype=_INDEX)
        for node, value in ((flat, -1), (begin, argument.begin)):
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto([value], tf.int64))
        row = _node("Reshape", f"{name}/_row", [name, _output(flat)], **kept, Tshape=_INDEX)
        size = _node("Shape", f"{name}/_size", [_output(row)], **kept, out_type=_INDEX)
        shape = _node("Shape", f"{name}/_shape", [name], **kept, out_type=_INDEX)
        self._added += [flat, begin, row, size, shape]
        flattened = _node(
            "Reshape", f"{name}/_memory", [name, _output(flat)], **kept, Tshape=_INDEX
        )
        part = _node(
            "Slice", f"{name}/_part", [name, _output(begin), _output(size)], **kept, Index=_INDEX
        )
        shaped = _node("Reshape", f"{name}/_shaped", [name, _output(shape)], **kept, Tshape=_INDEX)
        read = Read(ref, 0, ref.shape)
        for alias in (flattened, part, shaped):
            read = dataclasses.replace(read, alias=alias, source=read)
        return dataclasses.replace(read, shape=argument.shape, begin=argument.begin)

    def handed_on(self, ref: Ref, function: FunctionDef) -> str:
        """The handle that a loop's body returns: the next round waits for this one's writes."""
        handle = function.node_def.add(op="Identity", name=f"{ref.handle}/_handed_on")
        handle.attr["T"].type = RESOURCE
        writers = [name for v in ref.variables for name in self.writers.get(v, ())]
        set_inputs(handle, [ref.handle, *(f"^{name}" for name in writers)])
        return f"{handle.name}:output:0"

    def variable(self, node: NodeDef) -> list[NodeDef]:
        """No node: the ref stands for an argument."""
        ref = self._handles[node.attr["shared_name"].s.decode()]
        self.refs[self.output(node, 0, "ref")] = ref
        return []

    def output(self, node: NodeDef, place: int, name: str, part: int = 0) -> str:
        return f"{node.name}:{name}:{part}"


def _node(op: str, name: str, inputs: Sequence[str], **types: int) -> NodeDef:
    node = tf.compat.v1.NodeDef(op=op, name=name, input=inputs)
    for attribute, dtype in types.items():
        node.attr[attribute].type = dtype
    return node


def _output(node: NodeDef) -> str:
    return f"{node.name}:output:0"


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
