"""Merges the programs of TRAIN, EVAL and PREDICT: one value where they compute the same.

A merged value is in a training step that of TRAIN, and else that of EVAL or PREDICT. Where the
two differ, "a if training else b" is the merged value, as late or as early as leaves most of both
shared; a dropout, or a batch normalization in its two forms, is one layer that Keras tells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Code, Layer, Node, Program, Value

_NOISE = ("Dropout", "GaussianNoise")
_SUMS = frozenset({"AddN", "AddV2", "Mul", "Sub"})
_IGNORED = frozenset({"shared_name"})
_KEPT_WITH_BODIES = frozenset({"carried", "length", "read"})


def is_noise(node: Node) -> bool:
    """Whether a node is a layer that does nothing but in training."""
    return node.kind == g.LAYER and any(kind in node.layer.cls for kind in _NOISE)


class Numbers:
    """Numbers values so that those which compute the same have one."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._of: dict[Value, tuple[int, int]] = {}

    def add(self, nodes: Sequence[Node], *, trains: bool = False) -> None:
        """Numbers the outputs of nodes, each of which comes after its inputs.

        Where it `trains`, a value has the same number after a layer of noise as before.
        """
        for node in nodes:
            if trains and is_noise(node):
                self._of[node.outputs[0]] = self._of[node.inputs[0]]
                continue
            key = (operation(node), *(self._of[value] for value in node.inputs))
            number = self._known.setdefault(key, len(self._known))
            self._of.update({value: (number, value.index) for value in node.outputs})

    def __getitem__(self, value: Value) -> tuple[int, int]:
        return self._of[value]

    def of_program(self, program: Program) -> Hashable:
        """What tells whether another program, numbered anew, does the same."""
        self.add(program.nodes())
        return tuple(self._known), tuple(self[value] for value in program.outputs.values())


def operation(node: Node) -> Hashable:
    """What a node does with its inputs, for a comparison."""
    if node.kind in (g.INPUT, g.LABEL):
        return node.kind, node.attrs["key"]
    if "weight" in node.attrs:
        return node.kind, node.attrs["weight"].name
    if node.kind == g.LAYER:
        return node.kind, _layer(node), node.name if is_noise(node) else ""
    attrs = {k: v for k, v in node.attrs.items() if not k.startswith("_")}
    # Random numbers and tables are the same by name alone.
    named = node.name if {"seed", "seed2", "shared_name"} & set(attrs) else ""
    bodies = [(k, Numbers().of_program(body)) for k, body in sorted(node.bodies.items())]
    given = sorted(
        (k, _frozen(v))
        for k, v in attrs.items()
        if k not in _IGNORED and (not bodies or k in _KEPT_WITH_BODIES)
    )
    return node.kind, named, len(node.outputs), *given, *bodies


def _layer(node: Node) -> Hashable:
    """A layer by its configuration and variables; training's form is none of its own."""
    layer = node.layer
    options = {k: v for k, v in layer.options.items() if k != "momentum"}
    call = {k: v for k, v in layer.call.items() if k != "training"}
    at = {value: i for i, value in enumerate(node.inputs)}
    call = {k: at.get(v, v) if isinstance(v, Value) else v for k, v in call.items()}
    bound = {k: tuple(w.name for w in b.weights) for k, b in layer.bound.items()}
    parts = (layer.args, options, call, bound)
    return layer.cls, len(node.outputs), *(repr(_frozen(part)) for part in parts)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return tuple(sorted((k, _frozen(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    return repr(value)


class CrossedError(Exception):
    """What follows in training on what it is followed by else cannot be one."""


class Merged:
    """The values of TRAIN's program and of the others' as values of one program.

    Args:
      train: roots of the program of TRAIN; none without one.
      others: roots of the programs of EVAL and PREDICT.
      aligns: whether nodes on both sides that do the same of other inputs become one.
    """

    def __init__(self, train: Sequence[Value], others: Sequence[Value], *, aligns: bool = True):
        self._numbers = Numbers()
        trained, used = (g.ordered(v.node for v in values) for values in (train, others))
        self._numbers.add(trained, trains=True)
        self._numbers.add(used)
        self._trained, self._used = set(trained), set(used)
        # By number, with the operation's name and without, a value of TRAIN, and of the others.
        self._train_of: dict[Hashable, Value] = {}
        self._other_of: dict[Hashable, Value] = {}
        for nodes, found in ((trained, self._train_of), (used, self._other_of)):
            for value in (v for node in nodes for v in node.outputs):
                number = self._numbers[value]
                found.setdefault(number, value)
                found.setdefault((number, value.node.name), value)
        # By a node of TRAIN that differs, what its outputs and inputs are else.
        self._else: dict[Node, tuple[list[Value], list[Value]]] = {}
        self._made: dict[Node, Node] = {}
        self._selected: dict[tuple[Value, Value], Value] = {}
        self._layers: dict[Hashable, Layer] = {}
        self._entered: set[Node] = set()
        self._aligns = aligns
        self._align_layers(trained, used)

    def value(self, value: Value) -> Value:
        """The merged value of one side's, of use in that side's modes alone if they differ."""
        return self._of_train(value) if value.node in self._trained else self._of_other(value)

    def pair(self, train: Value, other: Value) -> Value:
        """The merged value that is `train` in training, and else `other`.

        Raises CrossedError where layers follow each other in another order in training.
        """
        self._align(train, other)
        return self._both(train, other)

    def _align_layers(self, trained: Sequence[Node], used: Sequence[Node]) -> None:
        """Aligns what a layer's calls are given, where it has one on each side."""
        calls: list[dict[Hashable, dict[Any, Node]]] = [{}, {}]
        for found, nodes in zip(calls, (trained, used), strict=True):
            for node in nodes:
                if node.kind == g.LAYER and node.layer.bound:
                    number = self._numbers[node.outputs[0]]
                    found.setdefault(operation(node), {}).setdefault(number, node)
        for key, mine in calls[0].items():
            for a, b in zip(mine.values(), calls[1].get(key, {}).values(), strict=False):
                self._align(a.outputs[0], b.outputs[0])

    def _align(self, train: Value, other: Value) -> None:
        """Goes back from two values, as far as their nodes do the same, and notes the others'."""
        stack = [(train, other)] if self._aligns else []
        while stack:
            train, other = stack.pop()
            a, b = train.node, other.node
            if a in self._else:
                continue
            if is_noise(a):
                drawn = _same(a, b)
                self._else[a] = ([other], b.inputs) if drawn else ([other], [other])
                stack.append((a.inputs[0], b.inputs[0] if drawn else other))
                continue
            taken = self._train_of.get(self._numbers[other], train)
            if self._numbers[train] in self._other_of or (
                self._numbers[taken] != self._numbers[train]
            ):
                continue
            if train.index == other.index and _same(a, b):
                self._else[a] = b.outputs, b.inputs
                for mine, its in zip(a.outputs, b.outputs, strict=True):
                    self._train_of.setdefault(self._numbers[its], mine)
                    self._train_of.setdefault((self._numbers[its], b.name), mine)
                stack += zip(a.inputs, b.inputs, strict=True)
            elif a.kind in _SUMS:
                stack += [(v, other) for v in a.inputs if _same(v.node, b)][:1]
            elif b.kind in _SUMS:
                stack += [(train, v) for v in b.inputs if _same(a, v.node)][:1]

    def _both(self, train: Value, other: Value) -> Value:
        number = self._numbers[other]
        outputs, _ = self._else.get(train.node, ([], []))
        others = self._numbers[outputs[train.index]] if outputs else self._numbers[train]
        mine = self._of_train(train)
        if others == number:
            return mine
        else_ = self._of_other(other)
        if (mine, else_) not in self._selected:
            node = Node(g.EXPRESSION, f"{train.node.name}/training", [mine, else_])
            node.attrs["text"], node.place = "{0} if training else {1}", train.node.place
            pairs = zip(mine.shape or (), else_.shape or (), strict=False)
            shape = tuple(a if a == b else None for a, b in pairs)
            same = mine.rank == else_.rank is not None
            self._selected[mine, else_] = node.output(shape if same else None, mine.dtype)
        return self._selected[mine, else_]

    def _of_train(self, value: Value) -> Value:
        for node in g.ordered([value.node]):
            if node in self._made:
                continue
            if node in self._entered:
                raise CrossedError
            self._entered.add(node)
            inputs = node.inputs
            if node in self._else:
                _, others = self._else[node]
                inputs = [self._both(*each) for each in zip(inputs, others, strict=True)]
            else:
                inputs = [self._made_of(v) for v in inputs]
            self._made[node] = self._copy(node, inputs)
        return self._made_of(value)

    def _of_other(self, value: Value) -> Value:
        for node in g.ordered([value.node]):
            if node in self._made:
                continue
            number = self._numbers[node.outputs[0]]
            train = self._train_of.get((number, node.name), self._train_of.get(number))
            first = self._other_of[number]
            if train is not None:
                self._made[node] = self._of_train(train).node
            elif first.node in self._made:
                self._made[node] = self._made[first.node]
            else:
                self._made[node] = self._copy(node, [self._made_of(v) for v in node.inputs])
        return self._made_of(value)

    def _made_of(self, value: Value) -> Value:
        return self._made[value.node].outputs[value.index]

    def _copy(self, node: Node, inputs: list[Value]) -> Node:
        made = dataclasses.replace(node, inputs=inputs, outputs=[], attrs=dict(node.attrs))
        for value in node.outputs:
            made.output(value.shape, value.dtype)
        if node.kind == g.LAYER:
            made.attrs["layer"] = self._one_layer(node, made)
        for inner in (n for body in node.bodies.values() for n in body.all_nodes()):
            if inner.kind == g.LAYER:
                inner.attrs["layer"] = self._one_layer(inner, inner)
        return made

    def _one_layer(self, node: Node, made: Node) -> Layer:
        """The layer of all calls, of both sides, that are calls of one."""
        key = operation(node) if node.layer.bound else node
        if key not in self._layers:
            moved = dict(zip(node.inputs, made.inputs, strict=True))
            call = {
                k: moved.get(v, v) if isinstance(v, Value) else v
                for k, v in node.layer.call.items()
            }
            if form := self._form(node):
                call["training"] = form
            self._layers[key] = dataclasses.replace(node.layer, call=call)
        return self._layers[key]

    def _form(self, node: Node) -> Any:
        """What a layer that is another in training is told; None for other layers."""
        if not is_noise(node) and "BatchNormalization" not in node.layer.cls:
            return None
        outputs, _ = self._else.get(node, ([], []))
        number = self._numbers[(outputs or node.outputs)[0]]
        other = self._other_of.get(number) if node in self._trained else node.outputs[0]
        trains = _trains(node)
        infers = other is not None and _trains(other.node)
        if node not in self._trained:
            return Code(str(infers))
        if other is not None and trains != infers:
            return g.TRAINING if trains else Code("not training")
        return g.TRAINING if trains and other is None else Code(str(trains))


def _trains(node: Node) -> bool:
    """Whether a layer has the form of training, whatever the mode."""
    return is_noise(node) or (node.kind == g.LAYER and node.layer.call.get("training") is not None)


def _same(a: Node, b: Node) -> bool:
    return a.kind == b.kind and len(a.inputs) == len(b.inputs) and operation(a) == operation(b)
