"""Patterns: of which operations a value is made, written as expressions of Python.

`x * Sigmoid(x)` is a product of a value and its sigmoid. In a pattern, a call names an operation's
kind, with values of attributes as keywords; `+ - * / **` are TensorFlow's operations, sums and
products in any order and nesting; a name is a value, the same wherever it stands, or the pattern
that the rules have of that name; `_` is any value; `weight.gamma` is made of one variable alone,
`number.rate` is a constant of one element and `array.axes` any constant; `Split(1, x)[2]` is an
output by its number; `a | b` is one of them.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras.graph import Bound, Node, Value, Weight

NODES = "nodes"
Found = dict[str, Any]
"""By name, values, constants and `Made` weights; of NODES, the operations that the pattern names,
the last one first."""
Matcher = Callable[[Value, Found], Iterator[Found]]
"""Gives each way to match a value, with what was found before."""

_KINDS = {
    ast.Add: ("AddV2",),
    ast.Mult: ("Mul",),
    ast.Sub: ("Sub",),
    ast.Div: ("RealDiv", "Div"),
    ast.Pow: ("Pow",),
    ast.USub: ("Neg",),
    "Select": ("Select", "SelectV2"),
}
_COMMUTATIVE = frozenset({"Maximum", "Minimum", "SquaredDifference"})


class Rules:
    """Compiles patterns that may use those of `named` by name."""

    def __init__(self, named: Mapping[str, str]):
        self._named: dict[str, Matcher] = {}
        for name, text in named.items():
            self._named[name] = self.compile(text)

    def compile(self, text: str) -> Matcher:
        return self._matcher(ast.parse(f"({text})", mode="eval").body)

    def _matcher(self, tree: ast.expr) -> Matcher:
        match tree:
            case ast.Name("_"):
                return lambda value, found: iter([found])
            case ast.Name(name):
                return _named(name, self._named.get(name))
            case ast.Attribute(ast.Name(source), name):
                return _source(source, name)
            case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant()):
                return _constant(ast.literal_eval(tree))
            case ast.UnaryOp(operator, operand):
                return _operation(_KINDS[type(operator)], [self._matcher(operand)], {})
            case ast.BinOp(left, ast.BitOr(), right):
                first, second = self._matcher(left), self._matcher(right)
                return lambda value, found: itertools.chain(
                    first(value, found), second(value, found)
                )
            case ast.BinOp(_, ast.Add() | ast.Mult() as operator, _):
                terms = [self._matcher(term) for term in _terms(tree, type(operator))]
                return _chain(_KINDS[type(operator)], terms)
            case ast.BinOp(left, operator, right):
                sides = [self._matcher(left), self._matcher(right)]
                return _operation(_KINDS[type(operator)], sides, {})
            case ast.Call(ast.Name(kind), arguments, keywords):
                wanted = {str(each.arg): ast.literal_eval(each.value) for each in keywords}
                inputs = [self._matcher(argument) for argument in arguments]
                return _operation(_KINDS.get(kind, (kind,)), inputs, wanted)
            case ast.Subscript(ast.Call(ast.Name(kind), arguments), ast.Constant(int(index))):
                inputs = [self._matcher(argument) for argument in arguments]
                return _operation((kind,), inputs, {}, index)
        raise ValueError(f"No pattern: {ast.unparse(tree)}")


def _terms(tree: ast.expr, operator: type) -> list[ast.expr]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, operator):
        return [*_terms(tree.left, operator), *_terms(tree.right, operator)]
    return [tree]


def _named(name: str, rule: Matcher | None) -> Matcher:
    def match(value: Value, found: Found) -> Iterator[Found]:
        if name in found:
            if found[name] is value:
                yield found
        elif rule is None:
            yield {**found, name: value}
        else:
            for each in rule(value, found):
                yield {**each, name: value}

    return match


def _source(source: str, name: str) -> Matcher:
    def read(value: Value) -> Any:
        if source == "weight":
            return Made.of(value)
        array = value.constant
        if array is None or (source == "number" and array.size != 1):
            return None
        return number(array) if source == "number" else _as_tuple(array.tolist())

    def match(value: Value, found: Found) -> Iterator[Found]:
        it = read(value)
        if it is not None and found.get(name, it) == it:
            yield {**found, name: it}

    return match


def number(array: np.ndarray) -> Any:
    """A constant as its author wrote it: the shortest decimal number of its dtype."""
    item = array.reshape(-1)[0]
    return float(str(item)) if array.dtype.kind == "f" else array.reshape(-1).tolist()[0]


def _as_tuple(array: Any) -> Any:
    return tuple(_as_tuple(each) for each in array) if isinstance(array, list) else array


def _constant(wanted: float) -> Matcher:
    def match(value: Value, found: Found) -> Iterator[Found]:
        array = value.constant
        numeric = array is not None and array.size and array.dtype.kind in "iuf"
        if numeric and np.allclose(np.float64(array), wanted, rtol=1e-6, atol=0):
            yield found

    return match


def _operation(
    kinds: Sequence[str], inputs: Sequence[Matcher], attrs: Found, index: int = 0
) -> Matcher:
    def match(value: Value, found: Found) -> Iterator[Found]:
        node = value.node
        if node.kind not in kinds or value.index != index or len(node.inputs) != len(inputs):
            return
        if all(node.attrs.get(name) == wanted for name, wanted in attrs.items()):
            found = _with(node, found)
            yield from _all(inputs, node.inputs, found)
            if node.kind in _COMMUTATIVE:
                yield from _all(inputs, node.inputs[::-1], found)

    return match


def _with(node: Node, found: Found) -> Found:
    return {**found, NODES: (*found.get(NODES, ()), node)}


def _all(matchers: Sequence[Matcher], values: Sequence[Value], found: Found) -> Iterator[Found]:
    if not matchers:
        yield found
        return
    for each in matchers[0](values[0], found):
        yield from _all(matchers[1:], values[1:], each)


def _chain(kinds: Sequence[str], terms: Sequence[Matcher]) -> Matcher:
    """A sum or product of terms, with the terms in any order and nesting."""

    def match(value: Value, found: Found) -> Iterator[Found]:
        node = value.node
        if node.kind not in kinds:
            return
        found = _with(node, found)
        for mask in range(1, 2 ** len(terms) - 1):
            sides = [[t for i, t in enumerate(terms) if (mask >> i & 1) == side] for side in (1, 0)]
            matchers = [s[0] if len(s) == 1 else _chain(kinds, s) for s in sides]
            yield from _all(matchers, node.inputs, found)

    return match


# arrays that are made of one variable, such as a kernel that the graph reshapes

_RESHAPES = ("ExpandDims", "Reshape", "Squeeze")


@dataclasses.dataclass(frozen=True)
class Made:
    """An array of one variable's elements: of the transposed variable if it is `turned`."""

    weight: Weight
    shape: tuple[int, ...]
    turned: bool = False

    @classmethod
    def of(cls, value: Value) -> Made | None:
        """What a value is made of, if of one variable alone."""
        node = value.node
        if value.weight is not None:
            return cls(value.weight, value.weight.shape)
        made = cls.of(node.inputs[0]) if node.kind in (*_RESHAPES, "Transpose") else None
        if made is None or value.shape is None or None in value.shape:
            return None
        if node.kind != "Transpose":
            return made.reshaped(*map(int, value.shape))  # type: ignore[arg-type]
        order = node.inputs[1].constant
        return made.transposed() if order is not None and order.tolist() == [1, 0] else None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def trailing(self) -> tuple[int, ...]:
        """The shape without leading dimensions of 1, along which it broadcasts."""
        first = next((i for i, n in enumerate(self.shape) if n != 1), len(self.shape) - 1)
        return self.shape[max(first, 0) :]

    @property
    def arranged(self) -> bool:
        """Whether it differs from the variable."""
        return self.turned or self.shape != self.weight.shape

    def reshaped(self, *shape: int) -> Made:
        return dataclasses.replace(self, shape=shape)

    def transposed(self) -> Made | None:
        """The transposed matrix; None of what is more than a variable."""
        return None if self.arranged else Made(self.weight, self.shape[::-1], turned=True)

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """Makes it of the variable's array."""
        return (array.T if self.turned else array).reshape(self.shape)

    def restore(self, array: tf.Tensor) -> tf.Tensor:
        """Makes the variable's array of it."""
        before = self.weight.shape[::-1] if self.turned else self.weight.shape
        array = array if before == self.shape else tf.reshape(array, before)
        return tf.transpose(array, [1, 0]) if self.turned else array

    def bound(self) -> Bound:
        return Bound([self.weight], self if self.arranged else None)
