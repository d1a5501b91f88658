"""Converts nodes with ref variables to nodes on resource variables that compute the same.

A read of a ref variable shares the variable's memory: an operation that uses the read after a write
sees the new value. A read of a resource variable keeps the value that it read. So an operation that
uses a read, and follows a write that the read does not follow, gets its own read just before it.
All other operations stay as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.refs import aliases, ref_ops
from tpu_estimator_compat.tf_internals import op_def_registry

NodeDef = Any  # tf.compat.v1.NodeDef
RESOURCE = tf.resource.as_datatype_enum
_SHAPES = "_output_shapes"
_INDICES = {tf.int32.as_datatype_enum, tf.int64.as_datatype_enum}


@dataclasses.dataclass(frozen=True)
class Ref:
    """An output that refers to a variable.

    Attributes:
      variables: names of the variables to which it may refer.
      handle: the output that is the variable's handle, as nodes name it.
      dtype, shape: of the variable; the dtype as an enum.
      after: the operation that has to run before the ref is used; empty for none.
    """

    variables: frozenset[str]
    handle: str
    dtype: int
    shape: aliases.Shape
    after: str = ""


@dataclasses.dataclass(frozen=True)
class Read:
    """An output that shares a variable's memory.

    Attributes:
      ref: of the variable.
      writes: bits of the writes to the variable that precede the output.
      shape: of the output.
      alias: the node that shares the memory of `source`; None for the read itself.
      place: index of the output among those of `alias`.
      begin: index of the variable's element with which the output begins; None after a Bitcast.
    """

    ref: Ref
    writes: int
    shape: aliases.Shape
    alias: NodeDef | None = None
    source: Read | None = None
    place: int = 0
    begin: int | None = 0


class Conversion:
    """Converts the nodes of one graph in the order of their creation.

    Attributes:
      refs: the outputs that are refs, as nodes name them.
      reads: the outputs that share a variable's memory, as nodes name them.
      writers: for each variable, names of the nodes that write to it.
    """

    has_plain_outputs = True

    def __init__(self, written_before: int = 0) -> None:
        self._before = written_before
        self.refs: dict[str, Ref] = {}
        self.reads: dict[str, Read] = {}
        self.writers: dict[str, list[str]] = {}
        self._preceding: dict[str, int] = {}  # bits of the writes that precede the end of a node
        self._writes: dict[str, int] = {}  # bits of the writes to a variable
        self._bits = written_before.bit_length()
        self._again: dict[tuple[str, str, int], NodeDef] = {}
        self._constants: dict[str, NodeDef] = {}  # of integers

    def convert(self, nodes: Iterable[NodeDef]) -> Iterator[NodeDef]:
        """Yields the converted nodes in the order of their effects; changes the given nodes."""
        for node in nodes:
            preceding = self._before
            for each in node.input:
                preceding |= self._preceding.get(producer(each), 0)
            self._preceding[node.name] = preceding
            uses = any(each in self.refs or each in self.reads for each in node.input)
            shapes = [_static(each) for each in node.attr[_SHAPES].list.shape] if uses else []
            node.attr.pop(_SHAPES, None)
            if node.op in ref_ops.VARIABLES:
                yield from self.variable(node)
            elif uses:
                yield from self._user(node, shapes)
            else:
                if node.op == "Const" and node.attr["dtype"].type in _INDICES:
                    self._constants[self.output(node, 0, "output")] = node
                yield node

    def variable(self, node: NodeDef) -> list[NodeDef]:
        dtype = node.attr["dtype"].type
        shape = _static(node.attr["shape"].shape)
        self.refs[node.name] = Ref(frozenset([node.name]), node.name, dtype, shape)
        node.op = "VarHandleOp"
        return [node]

    def output(self, node: NodeDef, place: int, name: str, part: int = 0) -> str:
        """The name by which other nodes take an output; `part` is an index in an output list."""
        del name, part
        return f"{node.name}:{place}" if place else str(node.name)

    def call(self, node: NodeDef) -> list[NodeDef] | None:
        """The nodes that replace one whose functions write to refs; None for other nodes."""

    def writes_to(self, ref: Ref) -> int:
        """Bits of the writes so far to a variable."""
        bits = 0
        for variable in ref.variables:
            bits |= self._writes.get(variable, 0)
        return bits

    def note_write(self, node: NodeDef, variables: Iterable[str]) -> None:
        bit = 1 << self._bits
        self._bits += 1
        for variable in variables:
            self._writes[variable] = self._writes.get(variable, 0) | bit
            self.writers.setdefault(variable, []).append(node.name)
        self._preceding[node.name] |= bit

    def note_earlier_write(self, variable: str) -> None:
        """Counts `written_before`, the writes before every node, as writes to a variable."""
        self._writes[variable] = self._before

    def looked_at(self, node: NodeDef, places: Collection[int]) -> list[NodeDef]:
        """Makes a node use the values that variables have when it runs; returns the added reads.

        `places` are indices of the inputs that are values; the others are refs.
        """
        added: list[NodeDef] = []
        inputs = list(node.input)
        for i in places:
            ref, read = self.refs.get(inputs[i]), self.reads.get(inputs[i])
            if ref:
                read = Read(ref, -1, ref.shape)
            if read and self._preceding[node.name] & self.writes_to(read.ref) != read.writes:
                inputs[i] = self._read_again(read, node, added)
        set_inputs(node, inputs)
        return added

    def _user(self, node: NodeDef, shapes: Sequence[aliases.Shape]) -> list[NodeDef]:
        called = self.call(node)
        if called is not None:
            return called
        values = [i for i, each in enumerate(node.input) if not each.startswith("^")]
        op = ref_ops.ref_op(node.op)
        if op is not None:
            refs = {i: self.refs[node.input[i]] for i in values if op.takes(i, node, self.refs)}
            if refs:
                added = self.looked_at(node, [i for i in values if i not in refs])
                self._of_refs(node, op, refs, added)
                return [*added, node]
        if node.op == "Identity" and node.input[0] in self.refs and self.has_plain_outputs:
            return self._read(node)
        added = self.looked_at(node, values)
        self.note_aliases(node, shapes)
        return [*added, node]

    def note_aliases(self, node: NodeDef, shapes: Sequence[aliases.Shape]) -> None:
        """Notes the outputs of a node that share the memory of a read."""
        if node.op in aliases.SAME:
            for i in range(len(node.input) if node.op == "IdentityN" else 1):
                if node.input[i] in self.reads:
                    self.reads[self.output(node, i, "output", i)] = self.reads[node.input[i]]
            return
        source = self.reads.get(node.input[aliases.shared_input(node)])
        if source is None:
            return
        if not aliases.may_share(node):
            return
        arguments = [self._constant(each) for each in node.input]
        begins = aliases.begins(node, source.shape, shapes, arguments)
        copy = tf.compat.v1.NodeDef()
        copy.CopyFrom(node)
        for i, begin in enumerate(begins):
            shape = shapes[i] if source.shape is not None and shapes else None
            first = None if node.op == "Bitcast" or source.begin is None else source.begin + begin
            output = self.output(node, i, output_name(node), i)
            self.reads[output] = Read(source.ref, source.writes, shape, copy, source, i, first)

    def _constant(self, output: str) -> np.ndarray | None:
        node = self._constants.get(output)
        return None if node is None else tf.make_ndarray(node.attr["value"].tensor).astype(np.int64)

    def _read(self, node: NodeDef) -> list[NodeDef]:
        """Turns an Identity of a ref into a read of the variable."""
        ref = self.refs[node.input[0]]
        node.op = "ReadVariableOp"
        node.attr.clear()
        node.attr["dtype"].type = ref.dtype
        writes = self._preceding[node.name] & self.writes_to(ref)
        self.reads[node.name] = Read(ref, writes, ref.shape)
        set_inputs(node, [ref.handle, *waits([ref]), *node.input[1:]])
        return [node]

    def _of_refs(
        self, node: NodeDef, op: ref_ops.RefOp, refs: dict[int, Ref], added: list[NodeDef]
    ) -> None:
        """Makes a node take handles in place of refs; appends other nodes for this to `added`."""
        inputs = list(node.input)
        for i, ref in refs.items():
            inputs[i] = ref.handle
        variables = frozenset[str]().union(*(ref.variables for ref in refs.values()))
        first = refs[min(refs)]
        passed = dataclasses.replace(first, variables=variables, after=node.name)
        if node.op == "RefIdentity":  # its consumers take the handle, and wait for the NoOp
            inputs = inputs[1:]
            node.op = "NoOp"
            node.attr.clear()
        elif node.op == "RefSelect":  # all handles but one are dead
            switches = [self._switched(node, i, each) for i, each in enumerate(inputs[1:])]
            added += switches
            inputs = [self.output(each, i, "outputs", i) for i, each in enumerate(switches)]
            node.op = "Merge"
            node.attr["T"].type = RESOURCE
        elif node.op in ref_ops.CONTROL_FLOW:
            node.op = node.op.removeprefix("Ref")
            node.attr["T"].type = RESOURCE
        elif not op.twin:
            raise NotImplementedError(
                f"{node.name} ({node.op}) takes the ref variable {first.handle!r}, and there is no "
                "such operation on resource variables. Make the variable with use_resource=True, "
                'or set RunConfig(runtime="session").'
            )
        else:
            if op.writes:
                self.note_write(node, variables)
            _set_attributes(node, op, first.dtype)
        for i, name in op.outputs:
            output = self.output(node, i, name)
            flows = node.op in ref_ops.PASSED_ON
            self.refs[output] = (
                dataclasses.replace(passed, handle=output, after="") if flows else passed
            )
        set_inputs(node, [*inputs, *waits(refs.values())])

    def _switched(self, node: NodeDef, place: int, handle: str) -> NodeDef:
        """A node whose output `place` is `handle` if `node`, a RefSelect, selects that place."""
        switch = tf.compat.v1.NodeDef(op="_SwitchN", name=f"{node.name}/_{place}")
        switch.input.extend([handle, node.input[0]])
        switch.attr["num_outs"].i = node.attr["N"].i + 1  # the last for an index out of range
        switch.attr["T"].type = RESOURCE
        return switch

    def _read_again(self, read: Read, node: NodeDef, added: list[NodeDef]) -> str:
        """The output with the value of `read` just before a node; appends its nodes to `added`."""
        alias, source, ref = read.alias, read.source, read.ref
        writes = self._preceding[node.name] & self.writes_to(ref)
        known = (ref.handle, "" if alias is None else alias.name, writes)
        if known not in self._again:
            made = tf.compat.v1.NodeDef()
            if alias is None or source is None:
                made.op = "ReadVariableOp"
                made.name = f"{producer(ref.handle)}/_read/{len(self._again)}"
                made.attr["dtype"].type = ref.dtype
                before = [e for e in node.input if self._preceding.get(producer(e), 0) & writes]
                after = [f"^{producer(each)}" for each in before]
                set_inputs(made, [ref.handle, *waits([ref]), *after])
            else:
                made.CopyFrom(alias)
                made.name = f"{alias.name}/_again/{len(self._again)}"
                made.input[aliases.shared_input(made)] = self._read_again(source, node, added)
            self._preceding[made.name] = self._preceding[node.name]
            self._again[known] = made
            added.append(made)
        made = self._again[known]
        output = self.output(made, read.place, output_name(made), read.place)
        self.reads[output] = dataclasses.replace(read, writes=writes)
        return output


def producer(edge: str) -> str:
    """The name of the node from which an input, or a control input, comes."""
    return edge.removeprefix("^").split(":", 1)[0]


def output_name(node: NodeDef) -> str:
    """The name of a node's first output, which may be a list."""
    return str(op_def_registry.get(node.op).output_arg[0].name)


def _static(shape: Any) -> aliases.Shape:
    known = tf.TensorShape(shape)
    return tuple(known.as_list()) if known.is_fully_defined() else None


def waits(refs: Iterable[Ref]) -> list[str]:
    return [f"^{ref.after}" for ref in refs if ref.after]


def set_inputs(node: NodeDef, inputs: Iterable[str]) -> None:
    inputs = list(inputs)
    values = [each for each in inputs if not each.startswith("^")]
    waits = dict.fromkeys(each for each in inputs if each.startswith("^"))
    del node.input[:]
    node.input.extend([*values, *waits])


def _set_attributes(node: NodeDef, op: ref_ops.RefOp, dtype: int) -> None:
    node.op = op.twin
    for name in list(node.attr):
        if name not in op.attributes:
            del node.attr[name]
    if "dtype" in op.attributes:
        node.attr["dtype"].type = dtype
