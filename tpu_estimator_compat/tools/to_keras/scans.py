"""Loops over the elements of arrays, which become `ops.scan`.

`tf.scan`, `dynamic_rnn` and the like count up to a length, read an element of some arrays, and
write an element of others. TensorFlow 1 holds them in `TensorArray`s, functions in lists of
tensors. The node that stands for such a loop, of kind SCAN, has

    inputs: what is carried, then the arrays that are read, then what each step takes as it is;
    attrs: "carried" and "read", the numbers of the first two, and "length", None if unknown;
    bodies["step"]: takes what is carried, an element of each array, the rest, and last the number
      of the step; gives what is carried, then an element of each result;
    outputs: what is carried at the end, then the results, stacked along a first dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.expressions import UnknownOperationError
from tpu_estimator_compat.tools.to_keras.graph import Node, Program, Value
from tpu_estimator_compat.tools.to_keras.reading import computed

_READS = {"TensorListGetItem": 0, "TensorArrayReadV3": 2}
_WRITES = {"TensorListSetItem": (0, 2), "TensorArrayWriteV3": (3, 2)}
"""By kind, the places of the array and of the element; the number of the element is at 1."""
_FILLED = {"TensorListFromTensor": 0, "TensorArrayScatterV3": 2}
_STACKED = {"TensorListStack": 0, "TensorArrayGatherV3": 2}


def find_scans(program: Program) -> None:
    """Replaces each loop over arrays, in place; others stay as they are."""
    for each in reversed(list(program.programs())):
        for node in each.nodes():
            if node.kind == g.LOOP:
                loop = _Loop(node, each.users())
                length = loop.length()
                if length is not None and loop.is_known(length):
                    _replace(each, loop, length)


def most_steps(loop: Node) -> int | None:
    """How many steps a loop makes at most; None where that is unknown."""
    length = _Loop(loop, {}).length()
    return length if isinstance(length, int) else None


def places_of_results(scan: Node) -> list[int]:
    """By result, the place of a carried value of its shape and dtype, each of another.

    On TensorFlow, what a step gives must have the structure of what it carries.
    Raises UnknownOperationError where there are too few.
    """
    given = list(scan.bodies["step"].outputs.values())
    carried = scan.attrs["carried"]
    found: list[int] = []
    for result in given[carried:]:
        places = [
            i
            for i, old in enumerate(given[:carried])
            if i not in found and (old.shape, old.dtype) == (result.shape, result.dtype)
        ]
        if not places and carried:
            raise UnknownOperationError("a result of a scan has no shape of a carried value")
        found += places[:1]
    return found


class _Loop:
    """What the values of a loop are, by their places."""

    def __init__(self, node: Node, users: dict[Value, list[Node]]):
        body = node.bodies["body"]
        self.node, self.users = node, users
        self.inputs = [body.inputs.get(str(i)) for i in range(len(node.inputs))]
        self.results = list(body.outputs.values())
        self.nodes = body.nodes()
        places = range(len(self.inputs))
        self.same = {i for i in places if self.results[i] is self.inputs[i]}
        self.counters = {i for i in places if self._counts(i)}
        index = {self.inputs[i] for i in self.counters}
        self.read = {
            place: n
            for n in self.nodes
            if n.kind in _READS and n.inputs[1] in index
            for place in self.same
            if n.inputs[_READS[n.kind]] is self.inputs[place]
            and node.inputs[place].node.kind in _FILLED
        }
        self.written = {i: self.results[i].node for i in places if self._writes(i, index)}
        self.handles = {i for i in self.same if node.inputs[i].dtype == "resource"}

    def _counts(self, place: int) -> bool:
        """Whether a value begins at 0 and grows by 1."""
        made, start = self.results[place].node, self.node.inputs[place].constant
        return (
            made.kind == "AddV2"
            and start is not None
            and start.size == 1
            and not start.any()
            and made.inputs[0] is self.inputs[place]
            and made.inputs[1].constant is not None
            and bool(np.all(made.inputs[1].constant == 1))
        )

    def _writes(self, place: int, index: set[Value | None]) -> bool:
        made = self.results[place].node
        if made.kind not in _WRITES or not (made.inputs[1] in index or _is_first(made.inputs[1])):
            return False
        taken = self.users.get(self.node.outputs[place], [])
        return made.inputs[_WRITES[made.kind][0]] is self.inputs[place] and all(
            user.kind in _STACKED for user in taken
        )

    def is_known(self, length: int | Value) -> bool:
        """Whether arrays are used as a scan uses them: read and written at the counter alone."""
        if isinstance(length, Value):
            # Keras on TensorFlow carries nothing past several arrays of unknown length.
            several = len(self.read) != 1 and self.carried
            if several or any(_is_first(node.inputs[1]) for node in self.written.values()):
                return False
        arrays = {self.inputs[i] for i in (*self.read, *self.written, *self.handles)}
        known = {*self.read.values(), *self.written.values()}
        others = [n for n in self.nodes if n not in known and arrays.intersection(n.inputs)]
        kinds = {self.node.inputs[i].dtype for i in self.carried + self.kept}
        return not others and not kinds & {"variant", "resource"} and bool(known)

    @property
    def carried(self) -> list[int]:
        apart = self.same | self.counters | set(self.written)
        return [i for i in range(len(self.inputs)) if i not in apart]

    @property
    def kept(self) -> list[int]:
        taken = {value for node in self.nodes for value in node.inputs}
        left = self.same - set(self.read) - self.handles
        return sorted(i for i in left if self.inputs[i] in taken)

    def array(self, place: int) -> Value:
        source = self.node.inputs[place].node
        return source.inputs[_FILLED[source.kind]]

    def length(self) -> int | Value | None:
        """How many steps there are, also as the size of an array; None where values tell."""
        condition = self.node.bodies["cond"]
        places = {v: int(k) for k, v in condition.inputs.items()}
        [result] = condition.outputs.values()
        tests = [result]
        while any(t.node.kind == "LogicalAnd" for t in tests):
            tests = [
                x for t in tests for x in (t.node.inputs if t.node.kind == "LogicalAnd" else [t])
            ]
        bounds: dict[Any, Any] = {}
        for test in tests:
            if test.node.kind != "Less" or places.get(test.node.inputs[0]) not in self.counters:
                return None
            bound = test.node.inputs[1]
            found = _bound(self.node.inputs[places[bound]] if bound in places else bound)
            bounds[_size(found)] = found
        arrays = {_size(g.size_of(self.array(i), 0)) for i in self.read}
        [key, *more] = bounds
        numbers = {size for size in arrays if isinstance(size, int)}
        # Arrays of unknown lengths that differ are an error of either model.
        fits = arrays <= {key} if isinstance(key, int) else key in arrays and not numbers
        return bounds[key] if fits and not more else None


def _size(length: Any) -> Any:
    """Equal for equal numbers, and for sizes of one dimension."""
    if not isinstance(length, Value):
        return length
    return length.node.inputs[0], length.node.attrs["axis"]


def _is_first(index: Value) -> bool:
    """Whether it is the place of all steps' elements in an array of one, which keeps the last."""
    return index.constant is not None and not index.constant.any()


def _bound(value: Value) -> int | Value | None:
    """The number or size that a counter stays below.

    That of `dynamic_rnn` is the longest of the given lengths, after which no step changes anything.
    """
    if value.node.kind == "Minimum" and value.node.inputs[1].node.kind == "Maximum":
        value = value.node.inputs[0]
    if value.constant is None:
        return value if value.node.kind == g.SIZE else None
    return int(value.constant)


def _replace(program: Program, loop: _Loop, length: int | Value) -> None:
    number = length if isinstance(length, int) else None
    given = [loop.node.inputs[i] for i in loop.carried]
    given += [loop.array(i) for i in loop.read] + [loop.node.inputs[i] for i in loop.kept]
    attrs = {"carried": len(loop.carried), "read": len(loop.read), "length": number}
    scan = Node(g.SCAN, loop.node.name, given, attrs, place=loop.node.place)
    step = scan.bodies["step"] = Program({}, {})
    places = [loop.inputs[i] for i in loop.carried]
    places += [read.outputs[0] for read in loop.read.values()]
    places += [loop.inputs[i] for i in loop.kept]
    index = Node(g.INPUT, "index", attrs={"key": str(len(places))}).output((), "int32")
    new = {value: index for i in loop.counters if (value := loop.inputs[i])}
    for i, value in enumerate(places):
        if value is not None:
            own = Node(g.INPUT, value.node.name, attrs={"key": str(i)})
            new[value] = step.inputs[str(i)] = own.output(value.shape, value.dtype)
    step.inputs[str(len(places))] = index
    for node in loop.nodes:
        node.inputs = [new.get(value, value) for value in node.inputs]
    elements = [node.inputs[_WRITES[node.kind][1]] for node in loop.written.values()]
    results = [loop.results[i] for i in loop.carried] + elements
    step.outputs = {str(i): new.get(value, value) for i, value in enumerate(results)}
    for i in loop.carried:
        value = loop.node.outputs[i]
        program.replace(value, scan.output(value.shape, value.dtype))
    for i, element in zip(loop.written, elements, strict=True):
        shape = None if element.shape is None else (number, *element.shape)
        stacked = scan.output(shape, element.dtype)
        if _is_first(loop.written[i].inputs[1]):
            stacked = computed(lambda x: x[-1:], stacked, name=scan.name)
        for user in loop.users.get(loop.node.outputs[i], []):
            program.replace(user.outputs[0], stacked)
    for i in loop.counters:
        end = g.constant(np.int32(length)) if isinstance(length, int) else length
        program.replace(loop.node.outputs[i], end)
    for i in loop.same:
        program.replace(loop.node.outputs[i], loop.node.inputs[i])
