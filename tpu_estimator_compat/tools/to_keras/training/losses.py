"""Cuts a merged program into the model and what `compute_loss` and metrics compute of its outputs.

What follows the model's last layer, and is no part of a prediction, belongs to the loss; and what
depends on labels, or on weights alone, which is regularization.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import json
from typing import Any

from tpu_estimator_compat.tools.to_keras.graph import (
    EXPRESSION,
    FUNCTION,
    INPUT,
    LABEL,
    LAYER,
    SIZE,
    SIZES,
    WEIGHT,
    Node,
    Program,
    Value,
    ordered,
)
from tpu_estimator_compat.tools.to_keras.layers.matching import Found, Rules


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
        if node.kind in (SIZE, SIZES):
            return False  # no tensor
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
            names = (f"{base}_{i}" if i else base for i in itertools.count())
            self._names[value] = next(n for n in names if n not in self._names.values())
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


_RULES = Rules(
    {
        "ones": "Fill(_, 1) | OnesLike(_)",
        "zeros": "ZerosLike(_) | 0",
        "nonzero": "Select(Equal(w, 0), zeros, ones)",
        "relu": "Select(GreaterEqual(x, zeros), x, zeros)",
        "below": "Select(GreaterEqual(x, zeros), -x, x)",
        "flat": "SparseSoftmaxCrossEntropyWithLogits(Reshape(x, _), Reshape(z, _))",
    }
)


def _same(found: Found, node: Node) -> Value | None:
    """The value, where it has the shape of the result."""
    x: Value = found["x"]
    shape = node.outputs[0].shape
    if node.kind == "Reshape" and "sizes" in found:
        shape = tuple(None if size < 0 else size for size in found["sizes"])
    return x if x.shape == shape and node.outputs[0].rank == x.rank else None


def _mean(found: Found, node: Node) -> Value | None:
    counted = found.get("counted", found.get("ones"))
    same = counted is not None and counted.shape == found["x"].shape
    return _function(node, "ops.mean", [found["x"]]) if same else None


def _nonzero(found: Found, node: Node) -> Value | None:
    """The number of weights that are not zero, as SUM_BY_NONZERO_WEIGHTS takes it."""
    if node.inputs[0].shape != found["w"].shape:
        return None
    dtype = node.outputs[0].dtype
    attrs = {"text": f'ops.cast(ops.count_nonzero({{0}}), "{dtype}")'}
    return Node(EXPRESSION, node.name, [found["w"]], attrs, place=node.place).output((), dtype)


def _binary(found: Found, node: Node) -> Value | None:
    inputs = [found["z"], found["x"]]
    return _function(node, "ops.binary_crossentropy", inputs, from_logits=True)


def _sparse(found: Found, node: Node) -> Value | None:
    x, z = found["x"], found["z"]
    if not x.shape or z.shape != x.shape[:-1] or node.outputs[0].rank != z.rank:
        return None
    return _function(node, "ops.sparse_categorical_crossentropy", [z, x], from_logits=True)


_TIDY = [
    (_RULES.compile(text), build)
    for text, build in (
        ("Sum(x, _)", _same),
        ("x * 1", _same),
        ("Reshape(x, array.sizes)", _same),
        ("DivNoNan(Sum(x, _), Sum(ones, _) | Sum(1 * ones, _))", _mean),
        ("DivNoNan(Sum(x, _), Cast(Size(counted)) | Size(counted))", _mean),
        ("Sum(nonzero * ones, _) | Sum(nonzero, _)", _nonzero),
        ("(relu - x * z) + Log1p(Exp(below))", _binary),
        ("Reshape(flat, _)", _sparse),
    )
]
"""What TensorFlow's losses compute, and what it is in Keras."""


def _tidy(program: Program) -> None:
    same: dict[Value, Value] = {}
    for node in program.nodes():
        node.inputs = [same.get(value, value) for value in node.inputs]
        for matcher, build in _TIDY if node.outputs else ():
            made = (build(found, node) for found in matcher(node.outputs[0], {}))
            if value := next(filter(None, made), None):
                same[node.outputs[0]] = value
                break
    program.outputs = {k: same.get(v, v) for k, v in program.outputs.items()}


def _function(node: Node, name: str, inputs: list[Value], **options: Any) -> Value:
    attrs = {"function": name, "options": options}
    made = Node(FUNCTION, node.name, inputs, attrs, place=node.place)
    return made.output(node.outputs[0].shape, node.outputs[0].dtype)
