"""Divides a program into parts: scopes that become classes, and what each takes and gives."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.classes import runs
from tpu_estimator_compat.tools.to_keras.classes.scopes import (
    Scope,
    Scopes,
    home,
    matches,
    owner_length,
)
from tpu_estimator_compat.tools.to_keras.graph import Layer, Node, Program, Value, Weight
from tpu_estimator_compat.tools.to_keras.layers.naming import common
from tpu_estimator_compat.tools.to_keras.simplify import localize

_LARGEST_LITERAL = 16
"""The most elements of a constant that is written as numbers; a larger one becomes a weight."""


class Part(Node):
    """A call of what becomes an object of a class.

    Attributes:
      is_run: whether the last of its scopes is none of the author's, see `runs`.
      items: nodes and parts, each after those that it takes values of.
      inputs: values of outside that it takes, weights of other parts among them.
      outputs: values that others, or the program, take of it.
      weights: the weights without a layer that are its own.
    """

    def __init__(self, scope: Scope, is_run: bool = False):
        super().__init__("Part", "/".join((*scope, "")))
        self.is_run = is_run
        self.items: list[Node] = []
        self.weights: list[Weight] = []

    def parts(self) -> Iterator[Part]:
        """Itself and the parts within, the inner ones first."""
        for item in self.items:
            if isinstance(item, Part):
                yield from item.parts()
        yield self

    def nodes(self) -> list[Node]:
        return [i for part in self.parts() for i in part.items if not isinstance(i, Part)]

    @property
    def scope_name(self) -> str:
        """Its scope's name as it was entered first: that of its variables."""
        if self.is_run:
            return self.scope[-1].rpartition("_")[0]
        scopes = [
            *(n.layer.scope for n in self.nodes() if n.kind == g.LAYER),
            *map(home, self.weights),
        ]
        first = (each for scope in scopes for each in scope if matches(self.scope[-1], each))
        return min(first, key=len, default=self.scope[-1])

    @property
    def thing(self) -> frozenset[Layer | Weight]:
        """Its layers and weights: two parts of the same ones are calls of one object."""
        layers = (n.layer for n in self.nodes() if n.kind == g.LAYER and n.layer.bound)
        weights = (weight for part in self.parts() for weight in part.weights)
        return frozenset(itertools.chain(layers, weights))


def divide(program: Program) -> Part:
    """The parts of a program, whose large constants become weights."""
    _prepare(program, {})
    localize(program)
    scopes = Scopes(program)
    search = True
    while True:
        root, wrong = _build(program, scopes)
        if wrong is not None:
            scopes.parts.remove(wrong.scope)
            search = search and wrong.scope not in scopes.runs
        elif not search or not runs.group(root, scopes):
            return root


def taken(item: Node) -> list[Value]:
    """The values that an item takes, with the weights that its branches take."""
    if not item.bodies:
        return item.inputs
    inner = [v for body in item.bodies.values() for n in body.nodes() for v in taken(n)]
    inner += [v for body in item.bodies.values() for v in body.outputs.values()]
    return item.inputs + [v for v in inner if v.node.kind == g.WEIGHT]


def with_bodies(items: Iterable[Node]) -> Iterator[Node]:
    """The items, and the nodes of their branches and loops."""
    for item in items:
        yield item
        for body in item.bodies.values():
            yield from body.all_nodes()


def bound_weights(nodes: Iterable[Node]) -> set[Weight]:
    """The weights of layers."""
    layers = (node.layer for node in with_bodies(nodes) if node.kind == g.LAYER)
    return {weight for each in layers for weight in each.weights}


def _prepare(program: Program, values: dict[Weight, Value]) -> None:
    """Makes weights of large constants, and one value of each weight."""
    for node in program.nodes():
        for body in node.bodies.values():
            _prepare(body, values)
        array = np.asarray(node.attrs.get("value"))
        if node.kind == g.CONSTANT and array.size > _LARGEST_LITERAL:
            name = f"{node.name}/table"
            weight = Weight(name, array.shape, array.dtype.name, False, array)
            node.kind, node.attrs = g.WEIGHT, {"weight": weight}
        if node.kind == g.WEIGHT:
            first = values.setdefault(node.attrs["weight"], node.outputs[0])
            if first is not node.outputs[0]:
                program.replace(node.outputs[0], first)


def _build(program: Program, scopes: Scopes) -> tuple[Part, Part | None]:
    """The tree of parts, and a part that cannot be one, if any."""
    parts = {each: Part(each, each in scopes.runs) for each in [(), *sorted(scopes.parts)]}
    for scope, part in parts.items():
        if scope:
            parts[scopes.inner(scope[:-1])].items.append(part)
    for node in program.nodes():
        if node.kind not in g.SOURCES:
            parts[scopes.inner(scopes.of[node])].items.append(node)
    _give_weights(scopes, parts)
    users = program.users()
    results = set(program.outputs.values())
    for part in parts[()].parts():
        inside = dict.fromkeys(
            n for n in scopes.of if scopes.of[n][: len(part.scope)] == part.scope
        )
        part.outputs = [
            value
            for node in inside
            for value in node.outputs
            if value in results or any(user not in inside for user in users.get(value, ()))
        ]
        wrong = _sort(part)
        if wrong is None and part.scope and not part.inputs:
            wrong = part  # Keras calls no layer without an input
        if wrong is not None:
            return part, wrong
    return parts[()], _torn(parts[()])


def _give_weights(scopes: Scopes, parts: dict[Scope, Part]) -> None:
    """Each weight without a layer to the part in whose scope it is, or that its users share."""
    of_layers = bound_weights(scopes.of)
    places: dict[Weight, list[Scope]] = {}
    for node, scope in scopes.of.items():
        for value in taken(node):
            if value.weight is not None and value.weight not in of_layers:
                places.setdefault(value.weight, []).append(scope)
    for weight, found in places.items():
        owners = {scopes.inner(place[: owner_length(weight, place)]) for place in found}
        if owners == {()} and home(weight) in parts:
            owners = {home(weight)}  # it is used elsewhere alone
        nested = any(a != b and a == b[: len(a)] for a in owners for b in owners)
        owners = {scopes.inner(common(owners))} if nested else owners
        shared = scopes.inner(common(found))
        for owner in {shared} if shared in scopes.runs else owners:  # whose scope says nothing
            parts[owner].weights.append(weight)


def _sort(part: Part, built: bool = True) -> Part | None:
    """Orders a part's items and finds its inputs; gives an inner part that makes a cycle.

    Where it is possible, what reads a weight of a layer comes after a call of it: `built`.
    """
    layers = {
        weight: item
        for item in reversed(part.items if built else [])
        for weight in bound_weights(item.nodes())
    }
    makers = {value: item for item in part.items for value in item.outputs}
    done: dict[Node, None] = {}
    path: list[Node] = []
    stack = [iter([makers[value] for value in part.outputs])]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            if path:
                done[path.pop()] = None
        elif item in path:
            if built:
                return _sort(part, built=False)
            cycle = path[path.index(item) :]
            return min((i for i in cycle if isinstance(i, Part)), key=lambda i: len(i.nodes()))
        elif item not in done:
            path.append(item)
            before = [makers[value] for value in taken(item) if value in makers]
            read = [value.weight for value in taken(item) if value.weight is not None]
            before += [layers[weight] for weight in read if layers.get(weight, item) is not item]
            stack.append(iter(before))
    part.items = list(done)
    own = {weight for each in part.parts() for weight in each.weights}
    own |= bound_weights(part.nodes())
    outside = (v for item in part.items for v in taken(item) if v not in makers)
    part.inputs = [
        v for v in dict.fromkeys(outside) if v.node.kind != g.CONSTANT and v.weight not in own
    ]
    calls = (item for item in part.items if isinstance(item, Part) or item.kind == g.LAYER)
    first = (value for each in calls for value in each.inputs[:1])
    main = next((value for value in first if value in part.inputs), None)
    part.inputs.sort(key=lambda value: (value.rank == 0, value is not main))
    return None


def _torn(root: Part) -> Part | None:
    """A part with a layer or weight that is also another's, and is not the same part again."""
    within = {part: set(part.parts()) for part in root.parts()}
    users: dict[Layer | Weight, list[Part]] = {}
    for part in root.parts():
        layers = [item.layer for item in part.items if item.kind == g.LAYER]
        things: list[Layer | Weight] = [each for each in layers if each.bound]
        for thing in dict.fromkeys([*things, *part.weights]):
            users.setdefault(thing, []).append(part)
    for part, other in itertools.chain.from_iterable(
        itertools.combinations(parts, 2) for parts in users.values()
    ):
        chain = [each for each in within if part in within[each] and other not in within[each]]
        theirs = [each for each in within if other in within[each] and part not in within[each]]
        if chain and theirs and [*map(_shape, chain)] != [*map(_shape, theirs)]:
            return max(chain[-1], theirs[-1], key=lambda each: len(each.nodes()))
    return None


def _shape(part: Part) -> tuple[object, ...]:
    """What is equal for two calls of one part."""
    kinds = [node.layer if node.kind == g.LAYER else node.kind for node in part.nodes()]
    kinds = [kind if not isinstance(kind, Layer) or kind.bound else kind.cls for kind in kinds]
    return part.thing, len(part.inputs), len(part.outputs), tuple(kinds)
