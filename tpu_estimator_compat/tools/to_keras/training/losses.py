"""Cuts a merged program into the model and what `compute_loss` and metrics compute of its outputs.

What follows the model's last layer, and is no part of a prediction, belongs to the loss; and what
depends on labels, or on weights alone, which is regularization.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    EXPRESSION,
    FUNCTION,
    INPUT,
    LABEL,
    LAYER,
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


class Cut:
    """The model's outputs, and programs of what is computed of them.

    Attributes:
      outputs: by name, the predictions, and after them what the programs need besides.
    """

    def __init__(self, predictions: dict[str, Value]):
        self.outputs = dict(predictions)
        self._names = {value: name for name, value in reversed(predictions.items())}
        self._of_model = set(ordered(value.node for value in predictions.values()))
        self._made: dict[Value, Value] = {}
        self._logits: set[Value] = set()
        self._flags: dict[str, dict[Node, bool]] = {"fed": {}, "labelled": {}, "weighed": {}}

    def program(self, outputs: dict[str, Value]) -> Program:
        """A program of values that a loss or a metric takes, on outputs of the model."""
        own = {
            "fed": lambda node: node.kind == INPUT,
            "labelled": lambda node: node.kind == LABEL,
            "weighed": lambda node: node.kind in (LAYER, WEIGHT),
        }
        for node in ordered(value.node for value in outputs.values()):
            for name, found in self._flags.items():
                found[node] = own[name](node) or any(found[v.node] for v in node.inputs)
            if node.kind.endswith("CrossEntropyWithLogits"):
                self._logits |= {node.inputs[0], *node.inputs[0].node.inputs[:1]}
        program = Program({}, {name: self._moved(value) for name, value in outputs.items()})
        _tidy(program)
        for node in program.nodes():
            if node.kind in (INPUT, LABEL):
                into = program.inputs if node.kind == INPUT else program.labels
                into[node.attrs["text"]] = node.outputs[0]
        return program

    def _moved(self, value: Value) -> Value:
        if value in self._made:
            return self._made[value]
        node = value.node
        if self._is_output(value):
            name = self._name(value)
            self.outputs[name] = value
            self._made[value] = _source(value, INPUT, name, f"y_pred[{json.dumps(name)}]")
        elif node.kind in (INPUT, LABEL):
            key = node.attrs["key"]
            text = key if node.kind == LABEL else f"x[{json.dumps(key)}]"
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
        is_open = {name: found[node] for name, found in self._flags.items()}
        if is_open["labelled"] or not (is_open["fed"] and is_open["weighed"]) or value.rank == 0:
            return False
        weights = any(each.node.kind == WEIGHT for each in node.inputs)
        fed = [each for each in node.inputs if self._flags["fed"][each.node]]
        if node.kind != LAYER and not weights and all(each in self._names for each in fed):
            return False  # computed of outputs
        selected = node.kind == EXPRESSION and "training" in node.attrs["text"]
        return node in self._of_model or node.kind == LAYER or weights or selected

    def _name(self, value: Value) -> str:
        if value not in self._names:
            node = value.node
            base = assigned_name(node.place) or (
                node.layer.name if node.kind == LAYER else (node.scope or (node.name,))[-1]
            )
            if value in self._logits and "logit" not in base:
                base = f"{base}_logits" if "logits" in self._names.values() else "logits"
            taken = [n for n in self._names.values() if n.rstrip("_0123456789") == base]
            self._names[value] = f"{base}_{len(taken)}" if taken else base
        return self._names[value]


def _source(value: Value, kind: str, key: str, text: str) -> Value:
    node = Node(kind, value.node.name, attrs={"key": key, "text": text}, place=value.node.place)
    return node.output(value.shape, value.dtype)


@functools.cache
def _assignments(file: str) -> dict[int, str]:
    """By line, the name that a statement gives to its value."""
    try:
        with open(file, encoding="utf-8") as opened:
            tree = ast.parse(opened.read())
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            found.update(dict.fromkeys(lines, node.targets[0].id))
    return found


def assigned_name(place: str) -> str:
    """The variable to which the author's line assigns; empty if it does not."""
    file, _, line = place.rpartition(":")
    return _assignments(file).get(int(line), "") if line.isdigit() else ""


def _tidy(program: Program) -> None:
    """Rewrites what TensorFlow's losses compute of a batch's size, and cross entropies."""
    same: dict[Value, Value] = {}
    for node in program.nodes():
        node.inputs = [same.get(value, value) for value in node.inputs]
        for rule in (_nothing, _mean, _present, _binary_cross_entropy, _sparse_cross_entropy):
            found = rule(node)
            if found is not None:
                same[node.outputs[0]] = found
                break
    program.outputs = {k: same.get(v, v) for k, v in program.outputs.items()}


def _nothing(node: Node) -> Value | None:
    """The input of an operation that leaves it as it is."""
    first = node.inputs[0] if node.inputs else None
    if first is None:
        return None
    if node.kind == "Sum" and first.rank == 0:
        return first
    if node.kind == "Mul":
        for factor, other in (node.inputs, node.inputs[::-1]):
            if factor.constant is not None and factor.rank == 0 and factor.constant == 1:
                return other
    if node.kind == "Reshape" and first.shape and node.inputs[1].constant is not None:
        sizes = tuple(int(size) for size in node.inputs[1].constant)
        if sizes[1:] == first.shape[1:] and sizes[0] in (-1, first.shape[0]):
            return first
    return None


def _is_full_sum(node: Node) -> bool:
    return node.kind == "Sum" and node.outputs[0].rank == 0


def _mean(node: Node) -> Value | None:
    """The mean, where a sum is divided by the number of its elements."""
    if node.kind != "DivNoNan" or not _is_full_sum(node.inputs[0].node):
        return None
    summed, by = node.inputs[0].node.inputs[0], node.inputs[1].node
    sized = by.inputs[0].node if by.kind == "Cast" else by
    if sized.kind == "Size" and sized.inputs[0].shape == summed.shape:
        return _function(node, "ops.mean", [summed])
    counted, shape = _counted(by)
    if counted is not None and counted.constant is not None and shape == summed.shape:
        return _function(node, "ops.mean", [summed])
    return None


def _present(node: Node) -> Value | None:
    """The number of weights that are not zero, as SUM_BY_NONZERO_WEIGHTS takes it."""
    counted, shape = _counted(node)
    if counted is None or counted.constant is not None or counted.shape != shape:
        return None
    made = Node(EXPRESSION, node.name, [counted], {"text": 'ops.cast(ops.count_nonzero({0}), "'})
    made.attrs["text"] += f'{node.outputs[0].dtype}")'
    made.place = node.place
    return made.output((), node.outputs[0].dtype)


def _counted(node: Node) -> tuple[Value | None, Any]:
    """The weights whose number `node` is, with the shape they are broadcast to.

    A constant stands for the weight 1 of all.
    """
    if not _is_full_sum(node):
        return None, None
    if _is_filled(node.inputs[0], 1):
        everything = Node(CONSTANT, node.name, attrs={"value": np.bool_(True)})
        return everything.output((), "bool"), node.inputs[0].shape
    if node.inputs[0].node.kind != "Mul":
        return None, None
    chosen, ones = node.inputs[0].node.inputs
    if not _is_filled(ones, 1) or chosen.node.kind not in ("Select", "SelectV2"):
        return None, None
    is_zero, zero, one = chosen.node.inputs
    if not _is_filled(zero, 0) or not _is_filled(one, 1):
        return None, None
    equal = is_zero.node
    compared = equal.inputs[1].constant if equal.kind == "Equal" else None
    if compared is None or np.any(compared):
        return None, None
    return equal.inputs[0], ones.shape


def _is_filled(value: Value, number: int) -> bool:
    if value.node.kind in ("ZerosLike", "OnesLike"):
        return number == (value.node.kind == "OnesLike")
    given = value.node.inputs[1] if value.node.kind == "Fill" else value
    return given.constant is not None and bool(np.all(given.constant == number))


def _binary_cross_entropy(node: Node) -> Value | None:
    """A cross entropy of sigmoids: `max(x, 0) - x * z + log(1 + exp(-abs(x)))`."""
    match node:
        case Node(kind="AddV2", inputs=[Value(node=Node(kind="Sub") as first), Value(node=log)]):
            pass
        case _:
            return None
    if log.kind != "Log1p" or log.inputs[0].node.kind != "Exp":
        return None
    relu, product, smaller = (
        first.inputs[0].node,
        first.inputs[1].node,
        log.inputs[0].node.inputs[0],
    )
    if {relu.kind, smaller.node.kind} - {"Select", "SelectV2"} or product.kind != "Mul":
        return None
    positive, x, zero = relu.inputs
    again, negative, x_again = smaller.node.inputs
    is_it = positive is again and x is x_again and x in product.inputs and _is_filled(zero, 0)
    compares = positive.node.kind == "GreaterEqual" and positive.node.inputs[0] is x
    if not (is_it and compares and negative.node.kind == "Neg" and negative.node.inputs[0] is x):
        return None
    labels = product.inputs[1] if product.inputs[0] is x else product.inputs[0]
    return _function(node, "ops.binary_crossentropy", [labels, x], from_logits=True)


def _sparse_cross_entropy(node: Node) -> Value | None:
    """A cross entropy whose inputs are made flat before, and which has their shape after."""
    made = node.inputs[0].node if node.kind == "Reshape" else node
    if made is node or made.kind != "SparseSoftmaxCrossEntropyWithLogits":
        return None
    if any(value.node.kind != "Reshape" for value in made.inputs):
        return None
    logits, labels = (value.node.inputs[0] for value in made.inputs)
    if not logits.shape or labels.shape != logits.shape[:-1] or labels.shape != _shaped(node):
        return None
    flat = _shaped(made.inputs[0].node)
    if flat is None or flat[-1] != logits.shape[-1]:
        return None
    name = "ops.sparse_categorical_crossentropy"
    return _function(node, name, [labels, logits], from_logits=True)


def _shaped(node: Node) -> tuple[int | None, ...] | None:
    """The shape that a reshape gives; None for unknown sizes."""
    sizes = node.inputs[1].constant
    if sizes is None:
        return node.outputs[0].shape
    return tuple(None if size < 0 else int(size) for size in sizes)


def _function(node: Node, name: str, inputs: list[Value], **options: Any) -> Value:
    attrs = {"function": name, "options": options}
    made = Node(FUNCTION, node.name, inputs, attrs, place=node.place)
    return made.output(node.outputs[0].shape, node.outputs[0].dtype)


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
        weights = [_weights(term)[0] for term in found] if form and len(found) > 1 else []
        test = _test({weight.name for weight in weights}, bound) if weights else None
        if test is None or not _keeps_sums(weights, bound):
            terms += found
            continue
        text = f"sum({form} for v in self.trainable_variables{test})"
        loop = Node(EXPRESSION, found[0].node.name, attrs={"text": text}, place=found[0].node.place)
        terms.append(loop.output((), value.dtype))
    if len(terms) == len(_terms(value)):
        return value
    for term in terms[1:]:
        node = Node("AddV2", value.node.name, [terms[0], term], place=value.node.place)
        terms[0] = node.output((), value.dtype)
    return terms[0]


def _weights(term: Value) -> list[Weight]:
    return [n.attrs["weight"] for n in ordered([term.node]) if n.kind == WEIGHT]


def _form(term: Value) -> str:
    """What a term computes of a weight `v`, the same text of all weights; empty for other terms."""
    texts: dict[Value, str] = {}
    nodes = ordered([term.node])
    if len(_weights(term)) != 1 or {node.kind for node in nodes} - _SUMS_OF_ELEMENTS:
        return ""
    for node in nodes:
        inputs = [texts[value] for value in node.inputs]
        if node.kind == "Sum":
            text = f"ops.sum({inputs[0]})" if node.outputs[0].rank == 0 else ""
        elif node.kind == CONSTANT:
            text = literal(node.attrs["value"])
        else:
            text = "v" if node.kind == WEIGHT else expression(node, inputs)
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


def _keeps_sums(weights: list[Weight], bound: dict[str, dict[str, Bound]]) -> bool:
    """Whether layers hold the weights' own elements, perhaps in another order."""
    wanted = {weight.name for weight in weights}
    made = [b for found in bound.values() for name, b in found.items() if name in wanted]
    for each in (b for b in made if b.make is not None):
        array, arrays = each.value(), [weight.value for weight in each.weights]
        before = sum(float(np.sum(np.square(a, dtype="float64"))) for a in arrays if a is not None)
        if array is None or not np.isclose(np.sum(np.square(array, dtype="float64")), before):
            return False
    return True
