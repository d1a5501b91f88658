"""Cuts a merged program into the model and what `compute_loss` and metrics compute of its outputs.

What follows the model's last layer, and is no part of a prediction, belongs to the loss; and what
depends on labels, or on weights alone, which is regularization.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.author import assigned_name
from tpu_estimator_compat.tools.to_keras.graph import Bound, Node, Program, Value, Weight
from tpu_estimator_compat.tools.to_keras.literals import literal
from tpu_estimator_compat.tools.to_keras.operations import expression


class Cut:
    """The model's outputs, and programs of what is computed of them.

    Attributes:
      outputs: by name, the predictions, and after them what the programs need besides.
    """

    def __init__(self, predictions: dict[str, Value]):
        self.outputs = dict(predictions)
        self._names = {value: name for name, value in reversed(predictions.items())}
        self._of_model = set(g.ordered(value.node for value in predictions.values()))
        self._made: dict[Value, Value] = {}
        self._logits: set[Value] = set()
        self._flags: dict[str, dict[Node, bool]] = {"fed": {}, "labelled": {}, "weighed": {}}

    def program(self, outputs: dict[str, Value]) -> Program:
        """A program of values that a loss or a metric takes, on outputs of the model."""
        own = {
            "fed": lambda node: node.kind == g.INPUT,
            "labelled": lambda node: node.kind == g.LABEL,
            "weighed": lambda node: node.kind in (g.LAYER, g.WEIGHT),
        }
        for node in g.ordered(value.node for value in outputs.values()):
            for name, found in self._flags.items():
                found[node] = own[name](node) or any(found[v.node] for v in node.inputs)
            if node.kind.endswith("CrossEntropyWithLogits"):
                self._logits |= {node.inputs[0], *node.inputs[0].node.inputs[:1]}
            if node.attrs.get("function") == "ops.sparse_categorical_crossentropy":
                self._logits.add(node.inputs[1])
        program = Program({}, {name: self._moved(value) for name, value in outputs.items()})
        for node in program.nodes():
            if node.kind in (g.INPUT, g.LABEL):
                into = program.inputs if node.kind == g.INPUT else program.labels
                into[node.attrs["text"]] = node.outputs[0]
        return program

    def _moved(self, value: Value) -> Value:
        if value in self._made:
            return self._made[value]
        node = value.node
        if self._is_output(value):
            name = self._name(value)
            self.outputs[name] = value
            self._made[value] = _source(value, g.INPUT, name, f"y_pred[{json.dumps(name)}]")
        elif node.kind in (g.INPUT, g.LABEL):
            key = node.attrs["key"]
            text = key if node.kind == g.LABEL else f"x[{json.dumps(key)}]"
            self._made[value] = _source(value, node.kind, key, text)
        else:
            inputs = [self._moved(each) for each in node.inputs]
            copy = dataclasses.replace(node, inputs=inputs, outputs=[])
            for each in node.outputs:
                self._made[each] = copy.output(each.shape, each.dtype)
        return self._made[value]

    def _is_output(self, value: Value) -> bool:
        """Whether a value is the model's, and not a part of a loss."""
        node = value.node
        if value in self._names:
            return True
        if node.kind in (g.SIZE, g.SIZES):
            return False  # no tensor
        is_open = {name: found[node] for name, found in self._flags.items()}
        if is_open["labelled"] or not (is_open["fed"] and is_open["weighed"]) or value.rank == 0:
            return False
        weights = any(each.node.kind == g.WEIGHT for each in node.inputs)
        fed = [each for each in node.inputs if self._flags["fed"][each.node]]
        if node.kind != g.LAYER and not weights and all(each in self._names for each in fed):
            return False  # computed of outputs
        selected = node.kind == g.EXPRESSION and "training" in node.attrs["text"]
        return node in self._of_model or node.kind == g.LAYER or weights or selected

    def _name(self, value: Value) -> str:
        if value not in self._names:
            node = value.node
            base = assigned_name(node.place) or (
                node.layer.name if node.kind == g.LAYER else (node.scope or (node.name,))[-1]
            )
            if value in self._logits and "logit" not in base:
                base = f"{base}_logits" if "logits" in self._names.values() else "logits"
            names = (f"{base}_{i}" if i else base for i in itertools.count())
            self._names[value] = next(n for n in names if n not in self._names.values())
        return self._names[value]


def _source(value: Value, kind: str, key: str, text: str) -> Value:
    node = Node(kind, value.node.name, attrs={"key": key, "text": text}, place=value.node.place)
    return node.output(value.shape, value.dtype)


# what is added up of weights alone: loops over the model's variables, or sums

_PENALTIES = frozenset({"Abs", "L2Loss", "Square"})
_APART = "Regularized"
"""The kind of a weight where it is regularized, as long as layers are recognized."""


def set_apart(program: Program) -> None:
    """Gives the weights that are regularized nodes of their own: they still may be a layer's."""
    for node in program.nodes():
        if node.kind in _PENALTIES and node.inputs[0].node.kind == g.WEIGHT:
            value, old = node.inputs[0], node.inputs[0].node
            apart = Node(_APART, old.name, attrs=dict(old.attrs), place=old.place)
            node.inputs = [apart.output(value.shape, value.dtype)]


def put_back(program: Program, bound: dict[str, dict[str, Bound]]) -> list[str]:
    """Makes these nodes weights again; returns the names of those that Keras holds otherwise."""
    apart = [node for node in program.nodes() if node.kind == _APART]
    for node in apart:
        node.kind = g.WEIGHT
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
        for node in g.ordered([value.node]):
            for each in [v for v in node.inputs if _is_sum(v)]:
                node.inputs = [_looped(v, bound) if v is each else v for v in node.inputs]
        program.outputs[key] = _looped(value, bound) if _is_sum(value) else value


def _is_sum(value: Value) -> bool:
    return value.rank == 0 and value.node.kind in ("AddN", "AddV2")


def _terms(value: Value) -> list[Value]:
    return [t for v in value.node.inputs for t in _terms(v)] if _is_sum(value) else [value]


def _looped(value: Value, bound: dict[str, dict[str, Bound]]) -> Value:
    """The sum with a loop for the terms that are the same of many weights."""
    groups: dict[str, list[Value]] = {}
    for term in _terms(value):
        groups.setdefault(_form(term), []).append(term)
    terms = []
    for form, found in groups.items():
        names = {_weights(term)[0].name for term in found} if form else set()
        held = _held(names, bound)
        test = _test(names, bound) if 1 < len(names) == len(found) else None
        if test is not None and _is_all(held, names) and not any(map(_added, held)):
            text = f"sum({form} for v in self.trainable_variables{test})"
            terms.append(_expression(text, [], found[0]))
            continue
        made = {weight.name for each in held if each.make for weight in each.weights}
        apart = [term for term in found if form and _weights(term)[0].name in made]
        terms += [t for t in found if t not in apart] + _of_parts(form, apart, bound)
    if terms == _terms(value):
        return value
    for term in terms[1:]:
        node = Node("AddV2", value.node.name, [terms[0], term], place=value.node.place)
        terms[0] = node.output((), value.dtype)
    return terms[0]


def _of_parts(form: str, terms: list[Value], bound: dict[str, dict[str, Bound]]) -> list[Value]:
    """The same of all that Keras has of the weights; `terms` where that is not all they are."""
    names = {_weights(term)[0].name for term in terms}
    held = _held(names, bound)
    if not _is_all(held, names):
        return terms
    found = []
    for part in held:
        attrs = {"weight": part.weights[0], "bound": part}
        value = Node(g.WEIGHT, terms[0].node.name, attrs=attrs).output(None, terms[0].dtype)
        added = _added(part)
        of_part = re.sub(r"\bv\b", f"({{0}} - {added})" if added else "{0}", form)
        found.append(_expression(of_part, [value], terms[0]))
    return found


def _expression(text: str, inputs: list[Value], like: Value) -> Value:
    node = Node(g.EXPRESSION, like.node.name, inputs, {"text": text}, place=like.node.place)
    return node.output((), like.dtype)


def _held(names: set[str], bound: dict[str, dict[str, Bound]]) -> list[Bound]:
    """What Keras holds that is made of weights."""
    every = (pair for found in bound.values() for pair in found.items())
    return list(dict.fromkeys(each for name, each in every if name in names))


def _is_all(held: list[Bound], names: set[str]) -> bool:
    """Whether it is made of these weights alone."""
    return all(weight.name in names for each in held for weight in each.weights)


def _added(bound: Bound) -> str:
    """The text of what is added to the variables' elements, which differs by gate."""
    if bound.added is None:
        return ""
    gates = bound.added.reshape(4, -1)
    return f"ops.repeat({literal(gates[:, 0].tolist())}, {gates.shape[1]})"


def _weights(term: Value) -> list[Weight]:
    return [n.attrs["weight"] for n in g.ordered([term.node]) if n.kind in (g.WEIGHT, _APART)]


def _form(term: Value) -> str:
    """What a term sums up of the elements of a weight `v`, the same text of all weights.

    It is empty for other terms, which are not the sum of the same of parts of the weight.
    """
    texts: dict[Value, str] = {}
    summed: set[Value] = set()
    for node in g.ordered([term.node]):
        inputs = [texts[value] for value in node.inputs]
        sums = summed.intersection(node.inputs)
        constants = [value for value in node.inputs if value.constant is not None]
        scaled = node.kind == "Mul" and all(value.elements == 1 for value in constants)
        if node.kind in (g.CONSTANT, g.WEIGHT, _APART):
            text = literal(node.attrs["value"]) if node.kind == g.CONSTANT else "v"
        elif (scaled and (constants or not sums)) or (node.kind in _PENALTIES and not sums):
            text = expression(node, inputs)
        elif node.kind == "Sum" and node.outputs[0].rank == 0 and not sums:
            text = f"ops.sum({inputs[0]})"
        else:
            return ""
        texts[node.outputs[0]] = text
        if sums or node.kind in ("L2Loss", "Sum"):
            summed.add(node.outputs[0])
    return texts[term] if term in summed and len(_weights(term)) == 1 else ""


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
