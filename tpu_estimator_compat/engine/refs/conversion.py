"""Converts nodes with ref variables to nodes on resource variables that compute the same.

A read of a ref variable shares the variable's memory: an operation that uses the read after a write
sees the new value. A read of a resource variable keeps the value that it read. So an operation that
uses a read, and follows a write that the read does not follow, gets its own read just before it.
All other operations stay as they are. A part of a read may share the memory or be a copy: if one is
used after a write, only a session knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph import graph_def, graph_ops
from tpu_estimator_compat.engine.refs import ref_ops

NodeDef = Any  # tf.compat.v1.NodeDef


@dataclasses.dataclass(frozen=True)
class Ref:
    """An output that refers to a variable.

    Attributes:
      variable: the name of the variable, which nodes take as its handle.
      dtype: of the variable, as an enum.
      after: the operation that has to run before the ref is used; empty for none.
    """

    variable: str
    dtype: int
    after: str = ""


@dataclasses.dataclass(frozen=True)
class Read:
    """An output that shares a variable's memory.

    Attributes:
      writes: bits of the writes to the variable that precede the output.
      is_whole: whether the output is the variable's value, and not a part or another shape of it.
    """

    ref: Ref
    writes: int
    is_whole: bool = True


class Conversion:
    """Converts the nodes of one graph in the order of their creation.

    Attributes:
      refs: the outputs that are refs, as nodes name them.
      reads: the outputs that share a variable's memory, as nodes name them.
      for_sessions: names of nodes that only sessions run as TensorFlow 1 did, each with the reason.
    """

    def __init__(self) -> None:
        self.refs: dict[str, Ref] = {}
        self.reads: dict[str, Read] = {}
        self.for_sessions: dict[str, str] = {}
        self._preceding: dict[str, int] = {}  # bits of the writes that precede the end of a node
        self._writes: dict[str, int] = {}  # bits of the writes to a variable
        self._bits = 0
        self._again: dict[tuple[str, int], str] = {}

    def convert(
        self, nodes: Iterable[NodeDef], operations: Sequence[tf.Operation]
    ) -> Iterator[NodeDef]:
        """Yields the converted nodes of operations, in the order of their effects; changes them."""
        parts = {op.name: len(op.outputs) for op in operations if ref_ops.may_share(op)}
        for op in filter(graph_ops.calls_functions, operations):
            if graph_def.functions_with(op.graph, [op], ref_ops.VARIABLES):
                self.for_sessions[op.name] = "has a branch or body that may write to a ref variable"
        for node in nodes:
            preceding = 0
            for each in node.input:
                preceding |= self._preceding.get(producer(each), 0)
            self._preceding[node.name] = preceding
            if node.op in ref_ops.VARIABLES:
                self.refs[node.name] = Ref(node.name, node.attr["dtype"].type)
                node.op = "VarHandleOp"
                yield node
            elif any(each in self.refs or each in self.reads for each in node.input):
                yield from self._user(node, parts.get(node.name, 0))
            else:
                yield node

    def _user(self, node: NodeDef, parts: int) -> list[NodeDef]:
        values = [i for i, each in enumerate(node.input) if not each.startswith("^")]
        op = ref_ops.ref_op(node.op)
        if op is not None:
            refs = {i: self.refs[node.input[i]] for i in op.places if node.input[i] in self.refs}
            if refs:
                added = self._looked_at(node, [i for i in values if i not in refs])
                self._of_refs(node, op, refs)
                return [*added, node]
        if node.op == "Identity" and node.input[0] in self.refs:
            return [self._read(node)]
        added = self._looked_at(node, values)
        self._note_shared(node, values, parts)
        return [*added, node]

    def _looked_at(self, node: NodeDef, places: Collection[int]) -> list[NodeDef]:
        """Makes a node use the values that variables have when it runs; returns the added reads.

        `places` are indices of the inputs that are values; the others are refs.
        """
        added: list[NodeDef] = []
        inputs = list(node.input)
        for i in places:
            ref, read = self.refs.get(inputs[i]), self.reads.get(inputs[i])
            if ref:
                read = Read(ref, -1)
            if read is None or self._writes_before(node, read.ref) == read.writes:
                continue
            if read.is_whole:
                inputs[i] = self._read_again(read.ref, node, added)
            else:
                self.for_sessions[node.name] = (
                    f"uses a part of the ref variable {read.ref.variable!r} that was taken before "
                    "a write to the variable"
                )
        _set_inputs(node, inputs)
        return added

    def _writes_before(self, node: NodeDef, ref: Ref) -> int:
        """Bits of the writes to a variable that precede a node."""
        return self._preceding[node.name] & self._writes.get(ref.variable, 0)

    def _note_shared(self, node: NodeDef, values: Collection[int], parts: int) -> None:
        """Notes the outputs of a node that share the memory of a read; `parts` may share parts."""
        if node.op in ref_ops.SAME:
            for i in values if node.op == "IdentityN" else (0,):
                if node.input[i] in self.reads:
                    self.reads[_output(node, i)] = self.reads[node.input[i]]
        elif parts and (reads := [self.reads[e] for e in node.input if e in self.reads]):
            for i in range(parts):
                self.reads[_output(node, i)] = dataclasses.replace(reads[0], is_whole=False)

    def _read(self, node: NodeDef) -> NodeDef:
        """Turns an Identity of a ref into a read of the variable."""
        ref = self.refs[node.input[0]]
        node.op = "ReadVariableOp"
        node.attr.clear()
        node.attr["dtype"].type = ref.dtype
        self.reads[node.name] = Read(ref, self._writes_before(node, ref))
        _set_inputs(node, [ref.variable, *_waits([ref]), *node.input[1:]])
        return node

    def _of_refs(self, node: NodeDef, op: ref_ops.RefOp, refs: dict[int, Ref]) -> None:
        """Makes a node take handles in place of refs."""
        inputs = list(node.input)
        for i, ref in refs.items():
            inputs[i] = ref.variable
        first = refs[min(refs)]
        if node.op == "RefIdentity":  # its consumers take the handle, and wait for the NoOp
            inputs = inputs[1:]
            node.op = "NoOp"
            node.attr.clear()
        elif not op.twin:
            raise NotImplementedError(
                f"{node.name} ({node.op}) takes the ref variable {first.variable!r}, and there is "
                "no such operation on resource variables. Make the variable with "
                'use_resource=True, or set RunConfig(runtime="session").'
            )
        else:
            if op.writes:
                self._note_write(node, {ref.variable for ref in refs.values()})
            _set_attributes(node, op, first.dtype)
        for i in op.outputs:
            self.refs[_output(node, i)] = dataclasses.replace(first, after=node.name)
        _set_inputs(node, [*inputs, *_waits(refs.values())])

    def _note_write(self, node: NodeDef, variables: Iterable[str]) -> None:
        bit = 1 << self._bits
        self._bits += 1
        for variable in variables:
            self._writes[variable] = self._writes.get(variable, 0) | bit
        self._preceding[node.name] |= bit

    def _read_again(self, ref: Ref, node: NodeDef, added: list[NodeDef]) -> str:
        """The value of a variable just before a node; appends a new read of it to `added`."""
        writes = self._writes_before(node, ref)
        known = ref.variable, writes
        if known not in self._again:
            name = f"{ref.variable}/_read/{len(self._again)}"
            made = tf.compat.v1.NodeDef(op="ReadVariableOp", name=name)
            made.attr["dtype"].type = ref.dtype
            before = [e for e in node.input if self._preceding.get(producer(e), 0) & writes]
            after = [f"^{producer(each)}" for each in before]
            _set_inputs(made, [ref.variable, *_waits([ref]), *after])
            self._preceding[name] = self._preceding[node.name]
            self._again[known] = name
            self.reads[name] = Read(ref, writes)
            added.append(made)
        return self._again[known]


def producer(edge: str) -> str:
    """The name of the node from which an input, or a control input, comes."""
    return edge.removeprefix("^").split(":", 1)[0]


def _output(node: NodeDef, place: int) -> str:
    """The name by which other nodes take an output."""
    return f"{node.name}:{place}" if place else str(node.name)


def _waits(refs: Iterable[Ref]) -> list[str]:
    return [f"^{ref.after}" for ref in refs if ref.after]


def _set_inputs(node: NodeDef, inputs: Iterable[str]) -> None:
    """Sets the inputs of a node: control inputs last, each once."""
    inputs = list(inputs)
    waits = dict.fromkeys(each for each in inputs if each.startswith("^"))
    graph_def.set_inputs(node, [*(each for each in inputs if not each.startswith("^")), *waits])


def _set_attributes(node: NodeDef, op: ref_ops.RefOp, dtype: int) -> None:
    node.op = op.twin
    for name in list(node.attr):
        if name not in op.attributes:
            del node.attr[name]
    if "dtype" in op.attributes:
        node.attr["dtype"].type = dtype
