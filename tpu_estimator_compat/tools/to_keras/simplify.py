"""Shortens a program: constants folded, sizes that are known as numbers, what changes nothing gone.

What TensorFlow computes at run time for a batch of any size, such as the shape of a reshape, has a
short form in Keras: -1, or `ops.shape(x)[0]`, which a node of kind SIZE stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.engine.functions import eager
from tpu_estimator_compat.tf_internals import op_def_registry
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Node, Program, Value
from tpu_estimator_compat.tools.to_keras.operations import raw_arguments

_LARGEST = 2**16
"""The most elements of a folded constant; what is larger, such as a mask, stays computed."""
_LARGEST_FORMULA = 8
"""The same for `ops.arange` and `ops.full`, which are shorter than their elements."""
_NOT_FOLDED = ("Random", "Placeholder", "Print", "Py", "Table")
_RESULTS = ("TensorListSetItem", "TensorArrayWriteV3")
"""What loops over arrays carry stays: it tells what the loop is."""
_NEUTRAL = {"Mul": 1, "AddV2": 0}
"""Numbers that change nothing, such as the mean of `random_normal`, or the 0 a sum begins with."""
_SIDES = ("else_branch", "then_branch")
Elements = list[Any]
"""Of a vector of sizes: numbers, and scalars that are known at run time."""


def simplify(program: Program) -> None:
    """Shortens a program in place."""
    prune(program)
    same: dict[Value, Value] = {}
    for node in program.nodes():
        node.inputs = [same.get(value, value) for value in node.inputs]
        for body in node.bodies.values():
            simplify(body)
        for old, new in zip(node.outputs, _replaced(node), strict=False):
            if new is not old:
                same[old] = same.get(new, new)
    program.outputs = {k: same.get(v, v) for k, v in program.outputs.items()}


def prune(program: Program) -> None:
    """Drops what loops carry, and branches give, for nobody: in training, what gradients need."""
    users = program.users()
    taken = {*users, *program.outputs.values()}
    for node in program.nodes():
        if node.kind == g.LOOP:
            _prune_loop(node, [i for i, value in enumerate(node.outputs) if value in taken])
        elif node.kind == g.BRANCH:
            left = [i for i, value in enumerate(node.outputs) if value in taken]
            for body in node.bodies.values():
                body.outputs = {str(n): body.outputs[str(i)] for n, i in enumerate(left)}
            node.keep_outputs(left)


def _prune_loop(node: Node, wanted: list[int]) -> None:
    condition, body = node.bodies["cond"], node.bodies["body"]
    needed = {k for k, v in body.outputs.items() if v.node.kind in _RESULTS} | set(map(str, wanted))
    left = _read(condition, condition)
    while left - needed:
        needed |= left
        part = Program({}, {k: body.outputs[k] for k in needed})
        left = _read(body, part)
    kept = [i for i in range(len(node.outputs)) if str(i) in needed]
    for each in (condition, body):
        each.inputs = {str(n): each.inputs[str(i)] for n, i in enumerate(kept)}
        for n, value in each.inputs.items():
            value.node.attrs["key"] = n
    body.outputs = {str(n): body.outputs[str(i)] for n, i in enumerate(kept)}
    node.inputs = [node.inputs[i] for i in kept]
    node.keep_outputs(kept)


def _read(body: Program, part: Program) -> set[str]:
    """The places of a body's inputs that a part of it reads."""
    nodes = set(part.nodes())
    return {place for place, value in body.inputs.items() if value.node in nodes}


def _replaced(node: Node) -> Sequence[Value]:
    """The values that stand for a node's outputs from now on."""
    if node.kind == g.BRANCH and node.inputs[0].constant is not None:
        return _inlined(node, node.bodies[_SIDES[bool(node.inputs[0].constant)]])
    if node.inputs and all(value.node.kind == g.CONSTANT for value in node.inputs):
        return _folded(node)
    if node.kind in _OF_SIZES and (made := _OF_SIZES[node.kind](node)):
        return made
    if node.kind == g.SIZE:
        known = (node.inputs[0].shape or ())[node.attrs["axis"]]
        return node.outputs if known is None else [g.constant(np.int32(known), node.name)]
    if node.kind in _NEUTRAL:
        for value, other in zip(node.inputs, node.inputs[::-1], strict=True):
            kept = other.rank == 0 or value.shape == node.outputs[0].shape is not None
            if kept and np.all(other.constant == _NEUTRAL[node.kind]):
                return [value]
    if node.kind == "Reshape":
        _fix_shape(node)
    if node.kind in ("Select", "SelectV2") and node.inputs[0].constant is not None:
        condition = node.inputs[0].constant
        chosen = node.inputs[1 if condition.all() else 2]
        if condition.all() == condition.any() and chosen.shape == node.outputs[0].shape:
            return [chosen]
    return [node.inputs[0]] if _does_nothing(node) else node.outputs


def _inlined(node: Node, body: Program) -> Sequence[Value]:
    """The results of the branch that is always taken."""
    given = {value: node.inputs[1 + int(key)] for key, value in body.inputs.items()}
    for inner in body.nodes():
        inner.inputs = [given.get(value, value) for value in inner.inputs]
    return [given.get(value, value) for value in body.outputs.values()]


def _folded(node: Node) -> Sequence[Value]:
    most = _LARGEST_FORMULA if node.kind in ("Range", "Fill") else _LARGEST
    small = all(
        (value.elements or 0) <= most and value.dtype not in ("variant", "resource")
        for value in node.outputs
    )
    definition = op_def_registry.get(node.kind)
    if definition is None or definition.is_stateful or not small or node.bodies:
        return node.outputs
    if any(part in node.kind for part in _NOT_FOLDED):
        return node.outputs
    found = compute(node, [value.constant for value in node.inputs])
    return [g.constant(tensor.numpy(), node.name) for tensor in found]


def compute(node: Node, inputs: Sequence[Any]) -> list[Any]:
    """The results of a node's operation, by TensorFlow."""
    with eager.eager_mode(), tf.device("CPU"):
        # An array of one element would lose its dtype.
        given, attributes = raw_arguments(node, [tf.constant(array) for array in inputs])
        result = getattr(tf.raw_ops, node.kind)(**given, **attributes)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _does_nothing(node: Node) -> bool:
    """Whether the only output is the first input, whatever it is."""
    if not node.inputs or len(node.outputs) != 1:
        return False
    given, made = node.inputs[0], node.outputs[0]
    known = given.shape is not None and given.shape == made.shape
    if node.kind in ("Reshape", "BroadcastTo", "Squeeze"):
        return known and list(given.shape or ()).count(None) <= 1
    if node.kind == "Cast":
        return given.dtype == made.dtype
    if node.kind == "Transpose":
        order = node.inputs[1].constant
        return order is not None and list(order) == list(range(len(order)))
    if node.kind == "Sum":
        return known
    if node.kind in ("StridedSlice", "Slice"):
        return known and None not in (given.shape or ())
    if node.kind in ("Tile", "Pad", "PadV2", "MirrorPad"):
        number = node.inputs[1].constant
        return number is not None and bool(np.all(number == (1 if node.kind == "Tile" else 0)))
    return node.kind in ("AddN", "ConcatV2") and len(node.inputs) - (node.kind == "ConcatV2") == 1


def _fix_shape(node: Node) -> None:
    """Writes the shape of a Reshape with at most one -1 as a constant, where that is enough."""
    elements = elements_of(node.inputs[1])
    shape = node.outputs[0].shape
    if elements is not None:  # which TensorFlow did not know where it made the operation
        told = [size if isinstance(size, int) and size >= 0 else None for size in elements]
        known = zip(shape or told, told, strict=True)
        shape = node.outputs[0].shape = tuple(b if a is None else a for a, b in known)
    if shape is not None and shape.count(None) <= 1:
        sizes = [-1 if size is None else size for size in shape]
        node.inputs[1] = g.constant(np.array(sizes, np.int32), node.inputs[1].node.name)


def elements_of(value: Value) -> Elements | None:
    """The elements of a vector of sizes: numbers and scalar values; None where they are unknown."""
    if value.constant is not None:
        array = value.constant
        return [int(x) for x in array] if array.ndim == 1 and array.dtype.kind in "iu" else None
    if value.node.kind == g.SIZES:
        left = iter(value.node.inputs)
        return [next(left) if size is None else size for size in value.node.attrs["sizes"]]
    return None


def _of_shape(node: Node) -> Sequence[Value] | None:
    axes = range(len(node.inputs[0].shape or ()))
    known = node.inputs[0].shape is not None
    return [_vector([g.size_of(node.inputs[0], i) for i in axes], node)] if known else None


def _of_prod(node: Node) -> Sequence[Value] | None:
    elements = elements_of(node.inputs[0])
    if elements is None:
        return None
    known = int(np.prod([e for e in elements if isinstance(e, int)]))
    unknown = [e for e in elements if not isinstance(e, int)]
    factors = [*unknown, *([] if known == 1 and unknown else [g.constant(np.int32(known))])]
    product = factors[0]
    for each in factors[1:]:
        product = Node("Mul", f"{node.name}/product", [product, each]).output((), "int32")
    return [product]


def _moved(node: Node) -> Sequence[Value] | None:
    """Sizes that an operation only moves: where it moves their numbers in a list."""
    given = node.inputs[: _MOVES[node.kind]]
    places = [value.constant for value in node.inputs[len(given) :]]
    sizes: Elements = []
    numbers = []
    for value in given:
        scalar = value.dtype in _INTEGERS and is_size(value)
        number = value.constant
        elements = elements_of(value)
        if scalar:
            elements = [value if number is None else int(number)]
        if elements is None or any(place is None for place in places):
            return None
        first, sizes = len(sizes), sizes + elements
        numbers.append(np.arange(first, len(sizes), dtype=np.int32).reshape(() if scalar else -1))
    found = [tensor.numpy() for tensor in compute(node, [*numbers, *places])]
    if any(array.ndim > 1 for array in found):
        return None
    moved = [[sizes[i] for i in array] if array.ndim else sizes[int(array)] for array in found]
    return [each if isinstance(each, Value) else _vector(each, node) for each in moved]


def is_size(value: Value) -> bool:
    """Whether a scalar is a number, a size that is known at run time, or computed of such."""
    kind = value.node.kind
    if kind in _ARITHMETIC and value.shape == ():
        return all(each.dtype in _INTEGERS and is_size(each) for each in value.node.inputs)
    return kind == g.SIZE or (kind == g.CONSTANT and value.shape == ())


_INTEGERS = ("int32", "int64")
_ARITHMETIC = ("AddV2", "Sub", "Mul", "FloorDiv", "Maximum", "Minimum", "Cast")
_MOVES = {"ConcatV2": -1, "ExpandDims": 1, "GatherV2": 1, "Pack": None, "Reshape": 1, "Slice": 1}
_MOVES |= {"SplitV": 1, "Squeeze": 1, "StridedSlice": 1}
"""Operations that move elements, with how many of the inputs have them: the others say where."""
_OF_SIZES: dict[str, Callable[[Node], Sequence[Value] | None]] = {
    "Shape": _of_shape,
    "Prod": _of_prod,
    **dict.fromkeys(_MOVES, _moved),
}
"""How sizes come about: a function of a node gives its values, or None for other ones."""


def _vector(sizes: Elements | int, node: Node) -> Value:
    """The value of a vector of sizes, or of a number."""
    dtype = node.outputs[0].dtype
    if isinstance(sizes, int) or all(isinstance(size, int) for size in sizes):
        return g.constant(np.array(sizes, dtype), node.name)
    known = [size if isinstance(size, int) else None for size in sizes]
    unknown = [size for size in sizes if not isinstance(size, int)]
    found = Node(g.SIZES, node.name, unknown, {"sizes": known})
    return found.output((len(sizes),), dtype)


def localize(program: Program) -> None:
    """Gives each operation that takes a size of a tensor an own one, made in its scope.

    So no part of a program takes or gives a size: Keras passes tensors alone.
    """
    made: dict[tuple[object, ...], Value] = {}

    def local(value: Value, scope: tuple[str, ...]) -> Value:
        node = value.node
        if node.kind == g.CONSTANT:
            return value
        inputs = node.inputs if node.kind == g.SIZE else [local(v, scope) for v in node.inputs]
        key = (scope, node.kind, *inputs, str(node.attrs))
        if key not in made:
            copy = Node(node.kind, "/".join((*scope, "size")), list(inputs), dict(node.attrs))
            made[key] = copy.output(value.shape, value.dtype)
        return made[key]

    for node in program.nodes():
        if node.kind not in g.SOURCES and not any(map(is_of_sizes, node.outputs)):
            node.inputs = [local(v, node.scope) if is_of_sizes(v) else v for v in node.inputs]


def is_of_sizes(value: Value) -> bool:
    return value.node.kind == g.SIZES or is_size(value)
