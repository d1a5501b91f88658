"""Writes what a loss adds up of weights alone: loops over the model's variables, or sums."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    EXPRESSION,
    WEIGHT,
    Bound,
    Node,
    Program,
    Value,
    Weight,
    ordered,
)
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import expression

_ADDS = frozenset({"Add", "AddN", "AddV2"})
_SUMS_OF_ELEMENTS = frozenset({"Abs", "L2Loss", "Mul", "Square", "Sum", CONSTANT, WEIGHT})
_PENALTIES = frozenset({"Abs", "L2Loss", "Square"})
_APART = "Regularized"
"""The kind of a weight where it is regularized, as long as layers are recognized."""


def set_apart(program: Program) -> None:
    """Gives the weights that are regularized nodes of their own: they still may be a layer's."""
    for node in program.nodes():
        if node.kind in _PENALTIES and node.inputs[0].node.kind == WEIGHT:
            value, old = node.inputs[0], node.inputs[0].node
            apart = Node(_APART, old.name, attrs=dict(old.attrs), place=old.place)
            node.inputs = [apart.output(value.shape, value.dtype)]


def put_back(program: Program, bound: dict[str, dict[str, Bound]]) -> list[str]:
    """Makes these nodes weights again; returns the names of those that Keras holds otherwise."""
    apart = [node for node in program.nodes() if node.kind == _APART]
    for node in apart:
        node.kind = WEIGHT
    names = {node.attrs["weight"].name for node in apart}
    parts = [(name, b) for found in bound.values() for name, b in found.items()]
    return sorted({name for name, each in parts if each.make and name in names})


def write_loops(program: Program, bound: dict[str, dict[str, Bound]]) -> None:
    """Writes sums of the same of many weights as loops over the model's variables.

    Args:
      bound: of the trainable weights of the whole model, by the name that their variables have in
        Keras, such as "kernel", what is bound there, by the weights' names. "" for weights that no
        layer has.
    """
    for key, value in list(program.outputs.items()):
        for node in ordered([value.node]):
            for each in [v for v in node.inputs if _is_sum(v)]:
                node.inputs = [_looped(v, bound) if v is each else v for v in node.inputs]
        program.outputs[key] = _looped(value, bound) if _is_sum(value) else value


def _is_sum(value: Value) -> bool:
    return value.rank == 0 and value.node.kind in _ADDS


def _terms(value: Value) -> list[Value]:
    return [t for v in value.node.inputs for t in _terms(v)] if _is_sum(value) else [value]


def _looped(value: Value, bound: dict[str, dict[str, Bound]]) -> Value:
    """The sum with a loop for the terms that are the same of many weights."""
    groups: dict[str, list[Value]] = {}
    for term in _terms(value):
        groups.setdefault(_form(term), []).append(term)
    terms = []
    for form, found in groups.items():
        held = _Held([_weights(term)[0] for term in found] if form else [], bound)
        test = _test({w.name for w in held.weights}, bound) if len(held.weights) > 1 else None
        if test is not None and held.once and not any(map(np.any, held.added.values())):
            text = f"sum({form} for v in self.trainable_variables{test})"
            terms.append(_expression(text, [], found[0]))
            continue
        apart = [term for term in found if form and _weights(term)[0].name in held.made]
        terms += [t for t in found if t not in apart] + _of_parts(form, apart, bound)
    if terms == _terms(value):
        return value
    for term in terms[1:]:
        node = Node("AddV2", value.node.name, [terms[0], term], place=value.node.place)
        terms[0] = node.output((), value.dtype)
    return terms[0]


def _of_parts(form: str, terms: list[Value], bound: dict[str, dict[str, Bound]]) -> list[Value]:
    """The same of all that Keras has of the weights; `terms` where that is not all they are."""
    held = _Held([_weights(term)[0] for term in terms], bound)
    found = []
    for part, array in held.added.items():
        text = _added(array)
        if text is None or not held.once or not _adds_up(terms[0]):
            return terms
        of_part = re.sub(r"\bv\b", f"({{0}}{text})" if text else "{0}", form)
        found.append(_expression(of_part, [_part(part, terms[0])], terms[0]))
    return found


def _adds_up(term: Value) -> bool:
    """Whether the term of a weight is a sum of elements, times a factor."""
    nodes = ordered([term.node])
    sums = [node for node in nodes if node.kind in ("L2Loss", "Sum")]
    axes = [value.node for node in sums for value in node.inputs[1:]]
    constants = [node for node in nodes if node.kind == CONSTANT and node not in axes]
    after = [n for n in nodes if n.outputs[0].rank == 0 and n not in (*sums, *constants, *axes)]
    factors = [n.kind == "Mul" and any(v.node in constants for v in n.inputs) for n in after]
    return len(sums) == 1 and all(factors) and all(n.outputs[0].elements == 1 for n in constants)


def _expression(text: str, inputs: list[Value], like: Value) -> Value:
    attrs = {"text": text}
    return Node(EXPRESSION, like.node.name, inputs, attrs, place=like.node.place).output(
        (), like.dtype
    )


def _part(bound: Bound, like: Value) -> Value:
    attrs = {"weight": bound.weights[0], "bound": bound}
    return Node(WEIGHT, like.node.name, attrs=attrs).output(None, like.dtype)


def _added(array: np.ndarray) -> str | None:
    """The text that takes off what is added to a weight, such as to the bias of forget gates."""
    if not np.any(array):
        return ""
    gates = array.reshape(4, -1) if array.ndim == 1 and array.size % 4 == 0 else array
    if array.ndim > 1 or np.any(gates != gates[:, :1]):
        return None
    return f" - ops.repeat({literal(gates[:, 0].tolist())}, {gates.shape[1]})"


class _Held:
    """Where Keras holds the elements of some weights.

    Attributes:
      added: by what is bound there, what is added to the elements.
      once: whether each element is there once, and no others with them.
      made: the names of those of the weights that Keras has in parts or in another order.
    """

    def __init__(self, weights: list[Weight], bound: dict[str, dict[str, Bound]]):
        self.weights = list(dict.fromkeys(weights))
        names = {weight.name for weight in weights}
        bounds = [b for found in bound.values() for name, b in found.items() if name in names]
        self.made = {weight.name for b in bounds if b.make for weight in b.weights}
        self.added: dict[Bound, np.ndarray] = {}
        numbers, total = {}, 0
        for weight in {w for b in bounds for w in b.weights}:
            size = math.prod(weight.shape)
            numbers[weight] = np.arange(total + 1.0, total + size + 1).reshape(weight.shape)
            total += size
        every = [np.zeros(0)]
        for each in dict.fromkeys(bounds):
            make: Any = each.make or np.asarray
            self.added[each] = make(*(np.zeros(w.shape) for w in each.weights))
            every.append((make(*(numbers[w] for w in each.weights)) - self.added[each]).ravel())
        self.once = names == {weight.name for weight in numbers} and np.array_equal(
            np.sort(np.concatenate(every)), np.arange(1.0, total + 1)
        )


def _weights(term: Value) -> list[Weight]:
    return [n.attrs["weight"] for n in ordered([term.node]) if n.kind in (WEIGHT, _APART)]


def _form(term: Value) -> str:
    """What a term computes of a weight `v`, the same text of all weights; empty for other terms."""
    texts: dict[Value, str] = {}
    nodes = ordered([term.node])
    if len(_weights(term)) != 1 or {n.kind for n in nodes} - _SUMS_OF_ELEMENTS - {_APART}:
        return ""
    for node in nodes:
        inputs = [texts[value] for value in node.inputs]
        if node.kind == "Sum":
            text = f"ops.sum({inputs[0]})" if node.outputs[0].rank == 0 else ""
        elif node.kind == CONSTANT:
            text = literal(node.attrs["value"])
        else:
            text = "v" if node.kind in (WEIGHT, _APART) else expression(node, inputs)
        texts[node.outputs[0]] = text
    return texts[term] if all(texts.values()) else ""


def _test(names: set[str], bound: dict[str, dict[str, Bound]]) -> str | None:
    """The condition of a loop over exactly these weights; None if there is none."""
    inside = sorted(name for name, found in bound.items() if names.issuperset(found))
    outside = sorted(name for name, found in bound.items() if names.isdisjoint(found))
    if set().union(*(bound[name] for name in inside)) != names or (
        len(inside) + len(outside) < len(bound)
    ):
        return None
    if not outside:
        return ""
    if "" in bound:
        return None
    chosen, operator = (inside, "==") if len(inside) <= len(outside) else (outside, "!=")
    if len(chosen) == 1:
        return f" if v.name {operator} {json.dumps(chosen[0])}"
    among = ", ".join(map(json.dumps, chosen))
    return f" if v.name {'in' if operator == '==' else 'not in'} ({among})"
