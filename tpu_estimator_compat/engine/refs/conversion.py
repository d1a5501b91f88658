"""Converts nodes with ref variables to nodes on resource variables that compute the same.

A read of a ref variable shares its memory: what looks at it after a write sees what was written. A
read of a resource variable is a value of its moment. So an operation that takes such a read, and
that follows a write which the read does not, gets a read of its own just before it. All else stays
as it is, operation for operation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.refs import ref_ops

NodeDef = Any  # tf.compat.v1.NodeDef
RESOURCE = tf.resource.as_datatype_enum


@dataclasses.dataclass(frozen=True)
class Ref:
    """An output that refers to a variable.

    Attributes:
      variables: names of the variables that it may refer to.
      handle: the output that is the variable's handle, as nodes name it.
      dtype: of the variable, as an enum.
      after: the operation that has to run before the ref is used; empty for none.
    """

    variables: frozenset[str]
    handle: str
    dtype: int
    after: str = ""


@dataclasses.dataclass(frozen=True)
class Read:
    """An output that shares a variable's memory.

    Attributes:
      ref: of the variable.
      writes: bits of the writes to the variable that precede the output.
      alias: the node that shares the memory of `source`; None for the read itself.
    """

    ref: Ref
    writes: int
    alias: NodeDef | None = None
    source: Read | None = None


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
        self._again: dict[tuple[str, str, int], str] = {}

    def convert(self, nodes: Iterable[NodeDef]) -> Iterator[NodeDef]:
        """Yields nodes in the order in which effects are to take place; changes those given."""
        for node in nodes:
            preceding = self._before
            for each in node.input:
                preceding |= self._preceding.get(producer(each), 0)
            self._preceding[node.name] = preceding
            if node.op in ref_ops.VARIABLES:
                yield from self.variable(node)
            elif any(each in self.refs or each in self.reads for each in node.input):
                yield from self._user(node)
            else:
                yield node

    def variable(self, node: NodeDef) -> list[NodeDef]:
        dtype = node.attr["dtype"].type
        self.refs[node.name] = Ref(frozenset([node.name]), node.name, dtype)
        node.op = "VarHandleOp"
        return [node]

    def output(self, node: NodeDef, place: int, name: str, part: int = 0) -> str:
        """An output as other nodes name it.

        Args:
          part: the place in an output that is a list.
        """
        del name, part
        return f"{node.name}:{place}" if place else str(node.name)

    def call(self, node: NodeDef) -> list[NodeDef] | None:
        """The nodes for one that calls functions, if these write to refs."""

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
        """Notes that the writes before every node include one to a variable."""
        self._writes[variable] = self._before

    def looked_at(self, node: NodeDef, places: Collection[int]) -> list[NodeDef]:
        """Has a node look at variables as they are before it; returns the reads for that.

        Args:
          places: of the inputs that are values; the others are refs.
        """
        added: list[NodeDef] = []
        inputs = list(node.input)
        for i in places:
            ref, read = self.refs.get(inputs[i]), self.reads.get(inputs[i])
            if ref:
                read = Read(ref, -1)
            if read and self._preceding[node.name] & self.writes_to(read.ref) != read.writes:
                inputs[i] = self._read_again(read, node, added)
        set_inputs(node, inputs)
        return added

    def _user(self, node: NodeDef) -> list[NodeDef]:
        called = self.call(node)
        if called is not None:
            return called
        values = [i for i, each in enumerate(node.input) if not each.startswith("^")]
        op = ref_ops.ref_op(node.op)
        if op is not None:
            refs = {i: self.refs[node.input[i]] for i in values if op.takes(i, node, self.refs)}
            if refs:
                added = self.looked_at(node, [i for i in values if i not in refs])
                self._of_refs(node, op, refs)
                return [*added, node]
        if node.op == "Identity" and node.input[0] in self.refs and self.has_plain_outputs:
            return self._read(node)
        added = self.looked_at(node, values)
        source = self.reads.get(node.input[0]) if node.op in ref_ops.ALIASES else None
        if source is not None:
            copy = tf.compat.v1.NodeDef()
            copy.CopyFrom(node)
            self.reads[self.output(node, 0, "output")] = Read(
                source.ref, source.writes, copy, source
            )
        return [*added, node]

    def _read(self, node: NodeDef) -> list[NodeDef]:
        """A copy of a ref, which is a read of the variable."""
        ref = self.refs[node.input[0]]
        node.op = "ReadVariableOp"
        node.attr.clear()
        node.attr["dtype"].type = ref.dtype
        self.reads[node.name] = Read(ref, self._preceding[node.name] & self.writes_to(ref))
        set_inputs(node, [ref.handle, *waits([ref]), *node.input[1:]])
        return [node]

    def _of_refs(self, node: NodeDef, op: ref_ops.RefOp, refs: dict[int, Ref]) -> None:
        """Makes a node that takes refs one that takes handles."""
        inputs = list(node.input)
        for i, ref in refs.items():
            inputs[i] = ref.handle
        variables = frozenset[str]().union(*(ref.variables for ref in refs.values()))
        first = refs[min(refs)]
        passed = dataclasses.replace(first, variables=variables, after=node.name)
        if node.op == "RefIdentity":  # what waits for it takes the handle itself
            inputs = inputs[1:]
            node.op = "NoOp"
            node.attr.clear()
        elif node.op in ref_ops.CONTROL_FLOW:
            node.op = node.op.removeprefix("Ref")
            node.attr["T"].type = RESOURCE
        elif not op.twin:
            raise NotImplementedError(
                f"{node.name} ({node.op}) takes the ref variable {first.handle!r}, and there is no "
                "such operation on resource variables. Make the variable with use_resource=True."
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

    def _read_again(self, read: Read, node: NodeDef, added: list[NodeDef]) -> str:
        """The output that is `read` as it is before a node; puts the nodes for it in `added`."""
        alias, source = read.alias, read.source
        if alias is not None and source is not None and alias.op == "Identity":
            return self._read_again(source, node, added)
        ref = read.ref
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
                made.input[0] = self._read_again(source, node, added)
            self._preceding[made.name] = self._preceding[node.name]
            output = self.output(made, 0, "value" if alias is None else "output")
            self._again[known] = output
            self.reads[output] = Read(ref, writes, alias, source)
            added.append(made)
        return self._again[known]


def producer(edge: str) -> str:
    """The node that an input comes from, or for which it waits."""
    return edge.removeprefix("^").split(":", 1)[0]


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
