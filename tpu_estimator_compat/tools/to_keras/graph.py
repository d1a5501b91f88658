"""The program that becomes a Keras model: nodes, their values, weights and layers.

It differs from a TensorFlow graph: functions are inlined, a variable is a value, a constant is an
array, and several operations may have become one layer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

Each = TypeVar("Each")

INPUT = "Input"
LABEL = "Label"
WEIGHT = "Weight"
CONSTANT = "Constant"
LAYER = "Layer"
FUNCTION = "Function"
EXPRESSION = "Expression"
SIZE = "DimensionSize"
SIZES = "ShapeTuple"
SCAN = "Scan"
BRANCH = "If"
LOOP = "While"
SOURCES = frozenset({INPUT, LABEL, WEIGHT, CONSTANT})
"""Kinds of nodes without inputs that need no line of code of their own."""


@dataclasses.dataclass(eq=False)
class Value:
    """A tensor, the output `index` of a node.

    Attributes:
      shape: sizes, None for an unknown one; None where the rank is unknown.
      dtype: the name of its dtype, such as "float32".
    """

    node: Node
    index: int
    shape: tuple[int | None, ...] | None
    dtype: str

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def constant(self) -> np.ndarray | None:
        """The array of a constant; None for other values."""
        return self.node.attrs["value"] if self.node.kind == CONSTANT else None

    @property
    def elements(self) -> int | None:
        """How many elements it has; None if that is unknown."""
        sizes = [size for size in self.shape or () if size is not None]
        return math.prod(sizes) if self.shape is not None and len(sizes) == self.rank else None

    @property
    def weight(self) -> Weight | None:
        return self.node.attrs["weight"] if self.node.kind == WEIGHT else None

    def __repr__(self) -> str:
        return f"<{self.node.kind} {self.node.name}:{self.index} {self.dtype}{self.shape}>"


@dataclasses.dataclass(eq=False)
class Node:
    """An operation, a layer's call, or a source of a value.

    Attributes:
      kind: the type of TensorFlow's operation, such as "MatMul", or one of this module's kinds.
      name: the operation's name; of an inlined function's, after the call's.
      inputs: what it takes, without control dependencies.
      attrs: the operation's attributes as Python values: strings as str, dtypes as their names,
        shapes as tuples. INPUT and LABEL: "key", the feature's name. WEIGHT: "weight". CONSTANT:
        "value". LAYER: "layer". FUNCTION, a call of Keras: "function", such as "ops.gelu", and
        "options", its keyword arguments. EXPRESSION, other Python: "text", in which "{0}", "{1}"
        stand for the inputs, such as "{0} if training else {1}". SIZE, `ops.shape(x)[axis]`:
        "axis". SIZES, a tuple of sizes for an argument such as a shape: "sizes", numbers, or None
        for the next input. SCAN: see `scans`.
      bodies: of a branch or loop, its functions by the attribute's name.
      place: the line of the user's code, "file:line"; empty if unknown.
    """

    kind: str
    name: str
    inputs: list[Value] = dataclasses.field(default_factory=list)
    attrs: dict[str, Any] = dataclasses.field(default_factory=dict)
    outputs: list[Value] = dataclasses.field(default_factory=list)
    bodies: dict[str, Program] = dataclasses.field(default_factory=dict)
    place: str = ""

    @property
    def scope(self) -> tuple[str, ...]:
        """The name scopes that it stands in, the outermost first."""
        return tuple(self.name.split("/")[:-1])

    @property
    def layer(self) -> Layer:
        found: Layer = self.attrs["layer"]
        return found

    @property
    def thing(self) -> Any:
        """What it calls, the same for all calls of a layer; itself for an operation."""
        return self.attrs.get("layer", self)

    def nodes(self) -> list[Node]:
        """Itself; the nodes of a part."""
        return [self]

    def output(self, shape: Any, dtype: str) -> Value:
        """Adds an output."""
        self.outputs.append(Value(self, len(self.outputs), shape, dtype))
        return self.outputs[-1]

    def keep_outputs(self, kept: Sequence[int]) -> None:
        """Drops the others."""
        self.outputs = [self.outputs[i] for i in kept]
        for i, value in enumerate(self.outputs):
            value.index = i

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


@dataclasses.dataclass(eq=False)
class Weight:
    """A variable: `value` is None where only its shape is known."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    value: Any = None


Weights = Mapping[str, Weight]
"""By the variables' names."""


@dataclasses.dataclass(eq=False)
class Bound:
    """How a weight of a layer is made of variables: `make` arranges the elements of their arrays.

    What is `added` to them is such as the 1 that is in the bias of a Keras LSTM's forget gate.
    """

    weights: list[Weight]
    make: Callable[..., np.ndarray] | None = None
    added: np.ndarray | None = None

    def arranged(self, arrays: Mapping[str, Any]) -> Any:
        """By the variables' names, arrays such as gradients in the form that the weight has."""
        given = [arrays[weight.name] for weight in self.weights]
        return self.make(*given) if self.make else given[0]

    def value(self, others: Mapping[str, np.ndarray] | None = None) -> Any:
        """The weight's array, perhaps where variables have other ones; None where one has none."""
        arrays = {weight.name: weight.value for weight in self.weights} | dict(others or {})
        if any(arrays[weight.name] is None for weight in self.weights):
            return None
        return self.arranged(arrays) if self.added is None else self.arranged(arrays) + self.added


@dataclasses.dataclass(eq=False)
class Layer:
    """A Keras layer; nodes that share it are calls of one layer.

    Attributes:
      cls: its class as the file names it, such as "layers.Dense", or a class of the file.
      name: the name that the author's scopes gave, such as "query".
      scope: the scopes in which the layer stands, without its own name.
      args: the constructor's positional arguments.
      options: the constructor's keyword arguments, without those that have Keras' default.
      bound: by the weight's path within the layer, such as "kernel" or "cell.kernel".
      call: keyword arguments of the call, as Python values or `Value`s of the node's inputs after
        the first. TRAINING stands for the model's argument of that name.
    """

    cls: str
    name: str
    scope: tuple[str, ...]
    args: list[Any] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    bound: dict[str, Bound] = dataclasses.field(default_factory=dict)
    call: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def weights(self) -> list[Weight]:
        return [weight for bound in self.bound.values() for weight in bound.weights]


@dataclasses.dataclass(frozen=True)
class Code:
    """An expression of Python as a value in `Layer.args`, `options` or `call`."""

    text: str


TRAINING = Code("training")


@dataclasses.dataclass(eq=False)
class Program:
    """Values by name, in and out, and all nodes that they need.

    Attributes:
      inputs: by the name of the feature; of a body of a branch or loop, by position.
      outputs: by the name of the prediction.
      labels: by the name of the label, empty for a program without a loss.
    """

    inputs: dict[str, Value]
    outputs: dict[str, Value]
    labels: dict[str, Value] = dataclasses.field(default_factory=dict)

    def nodes(self) -> list[Node]:
        """All nodes that the outputs need, each after those that it takes values of."""
        return ordered(value.node for value in self.outputs.values())

    def programs(self) -> Iterator[Program]:
        """Itself, and the bodies of its branches and loops, the outer ones first."""
        yield self
        for node in self.nodes():
            for body in node.bodies.values():
                yield from body.programs()

    def all_nodes(self) -> list[Node]:
        """Those of bodies too."""
        return [node for program in self.programs() for node in program.nodes()]

    def weights(self) -> dict[str, Weight]:
        """By name, all weights that the program uses, those of layers too."""
        found: dict[str, Weight] = {}
        for node in self.all_nodes():
            if node.kind == WEIGHT:
                found[node.attrs["weight"].name] = node.attrs["weight"]
            if node.kind == LAYER:
                found.update({weight.name: weight for weight in node.layer.weights})
        return found

    def users(self) -> dict[Value, list[Node]]:
        """By value, the nodes that take it, each as often as it does."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes():
            for value in node.inputs:
                found.setdefault(value, []).append(node)
        return found

    def replace(self, old: Value, new: Value) -> None:
        """Gives all users of `old`, and the outputs, `new` in its place."""
        for node in self.nodes():
            node.inputs = [new if value is old else value for value in node.inputs]
        self.outputs = {k: new if v is old else v for k, v in self.outputs.items()}


def ordered(targets: Iterable[Node]) -> list[Node]:
    """`targets` and all nodes before them, each after its inputs."""
    return in_order(targets, lambda node: (value.node for value in node.inputs))


def in_order(targets: Iterable[Each], before: Callable[[Each], Iterable[Each]]) -> list[Each]:
    """`targets` and all that is before them, each after what is before it."""
    done: list[Each] = []
    entered: set[Each] = set()
    stack: list[tuple[Any, Iterator[Each]]] = [(None, iter(targets))]
    while stack:
        item, left = stack[-1]
        inner = next((each for each in left if each not in entered), None)
        if inner is not None:
            entered.add(inner)
            stack.append((inner, iter(before(inner))))
        elif stack.pop()[0] is not None:
            done.append(item)
    return done


def size_of(value: Value, axis: int) -> int | Value:
    """A dimension's number, or its size at run time, see `sized_like`."""
    known = value.shape and value.shape[axis]
    if isinstance(known, int):
        return known
    value = sized_like(value, axis)
    found = Node(SIZE, f"{value.node.name}/size", [value], {"axis": axis})
    return found.output((), "int32")


def sized_like(value: Value, axis: int) -> Value:
    """The first value that has the same size in a dimension for certain."""
    while value.node.kind in _KEEPS_SHAPE or (
        value.node.kind in _KEEPS_BATCH and axis == 0 and value.node.inputs[0].shape
    ):
        value = value.node.inputs[0]
    return value


_KEEPS_SHAPE = frozenset({"Relu", "Tanh", "Sigmoid", "Softmax", "Cast", "Exp", "Neg", "Square"})
_KEEPS_BATCH = frozenset({"ExpandDims", "Conv2D", "MaxPool", "AvgPool", "FusedBatchNormV3"})


def constant(array: Any, name: str = "constant") -> Value:
    """A constant's value."""
    array = np.asarray(array)
    node = Node(CONSTANT, name, attrs={"value": array})
    return node.output(array.shape, "string" if array.dtype.kind in "OSU" else array.dtype.name)
