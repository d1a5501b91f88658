"""In which scope each operation stands, as the author saw it, and which scopes become classes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Layer, Node, Program, Weight
from tpu_estimator_compat.tools.to_keras.layers.naming import common

Scope = tuple[str, ...]

_PLUMBING = frozenset({"Cast", "ExpandDims", "Identity", "Reshape", "Shape", "Slice", "Squeeze"})
"""What makes no class of a scope that has one layer besides, like sizes and activations."""
_MINOR = _PLUMBING | {"StridedSlice", "Relu", "Tanh", "Sigmoid", "Softmax", "Pack", g.SIZE, g.SIZES}


def matches(entered: str, scope: str) -> bool:
    """Whether `entered` names `scope`, perhaps entered again: `dec_1` is `dec`."""
    return entered == scope or re.fullmatch(re.escape(scope) + r"_\d+", entered) is not None


def find(scope: Scope, within: Scope) -> int | None:
    """Where in `within` all of `scope` has come, other scopes between."""
    end = 0
    for each in scope:
        found = [i for i in range(end, len(within)) if matches(within[i], each)]
        if not found:
            return None
        end = found[0] + 1
    return end


def owned(node: Node) -> list[Layer | Weight]:
    """The layer or the weights that a node uses."""
    if node.kind == g.LAYER:
        return [node.layer]
    return [v.node.attrs["weight"] for v in node.inputs if v.node.kind == g.WEIGHT]


def home(weight: Weight) -> Scope:
    return tuple(weight.name.split("/")[:-1])


def owner_length(weight: Weight, scope: Scope) -> int:
    """How many of `scope`, which an operation stands in, lead to the weight's own scope."""
    inside = home(weight)
    for length in range(len(inside), 0, -1):
        found = find(inside[:length], scope)
        if found is not None:
            return found
    return 0


class Scopes:
    """The scopes of a program's nodes, and those that are parts.

    Attributes:
      of: by node, the scope that it stands in.
      parts: scopes that become classes, without the whole, `()`.
      runs: those among them that the author did not enter.
    """

    def __init__(self, program: Program):
        self._nodes = [node for node in program.nodes() if node.kind not in g.SOURCES]
        self._users = program.users()
        self.of = {node: self._place(node) for node in self._nodes}
        self._hoist()
        self.parts: set[Scope] = set()
        self.runs: set[Scope] = set()
        scopes = {scope[:i] for scope in self.of.values() for i in range(len(scope) + 1)}
        for scope in sorted(scopes, key=len, reverse=True):
            self._consider(scope)

    def inner(self, scope: Scope) -> Scope:
        """The innermost part that a scope is or stands in."""
        return next((scope[:i] for i in range(len(scope), 0, -1) if scope[:i] in self.parts), ())

    def enclose(self, nodes: list[Node], outer: Scope, name: str) -> None:
        """Makes a part of nodes, with the parts that they are, within another part."""
        all_of_them = {scope[: len(outer) + 1] for scope in self.of.values()}
        numbered = ((*outer, f"{name}_{i}") for i in itertools.count())
        new = next(scope for scope in numbered if scope not in all_of_them)
        old = {self.of[node][:i] for node in nodes for i in range(len(self.of[node]) + 1)}
        inner = {scope for scope in self.parts & old if len(scope) > len(outer)}
        moved = {scope: (*new, *scope[len(outer) :]) for scope in inner}
        self.of.update({node: (*new, *self.of[node][len(outer) :]) for node in nodes})
        self.parts = {new, *(moved.get(scope, scope) for scope in self.parts)}
        self.runs = {new, *(moved.get(scope, scope) for scope in self.runs)}

    def _place(self, node: Node) -> Scope:
        if node.kind != g.LAYER or not node.layer.bound:
            return node.scope
        layer = node.layer
        found = find(layer.scope, node.scope)
        if found is None:
            return layer.scope
        rest = node.scope[found:]
        named = [i for i, each in enumerate(rest) if matches(each, layer.name)]
        return node.scope[: found + named[0]] if named else node.scope[:found]

    def _hoist(self) -> None:
        """Moves what needs no weight, and several scopes use, to where they have it in common."""
        free: set[Node] = set()
        for node in self._nodes:
            before = all(v.node.kind in g.SOURCES or v.node in free for v in node.inputs)
            if before and not owned(node) and not node.bodies:
                free.add(node)
        for node in reversed(self._nodes):
            users = [self.of[user] for user in self._takers(node)]
            if node in free and users:
                self.of[node] = common([self.of[node], *users])

    def _consider(self, scope: Scope) -> None:
        """Makes `scope` a part if it has enough of its own and nothing stands between it."""
        members = {node for node, each in self.of.items() if each[: len(scope)] == scope}
        children = {self._outermost(node, scope) for node in members} - {scope}
        direct = [node for node in members if self._outermost(node, scope) == scope]
        things = {thing for node in direct for thing in self._things(node, scope)}
        others = sum(node.kind not in _MINOR and not owned(node) for node in direct)
        if len(children) == 1 and not things and others <= 1:
            self.parts -= children  # one class for both, under the outer name
            children = {self._outermost(node, scope) for node in members} - {scope}
            enough = True
        else:
            enough = len(things) + len(children) > (0 if others > 2 else 1)
        if not scope or not enough or len(members) == len(self._nodes):
            return
        after = g.in_order(members, self._takers)
        between = set(after) & set(g.ordered(members)) - members
        if any(owned(node) or self.of[node] != scope[: len(self.of[node])] for node in between):
            return
        self.of.update(dict.fromkeys(between, scope))
        self.parts.add(scope)

    def _takers(self, node: Node) -> list[Node]:
        return [user for value in node.outputs for user in self._users.get(value, ())]

    def _outermost(self, node: Node, scope: Scope) -> Scope:
        inside = self.of[node]
        lengths = range(len(scope) + 1, len(inside) + 1)
        return next((inside[:i] for i in lengths if inside[:i] in self.parts), scope)

    def _things(self, node: Node, scope: Scope) -> Iterable[Layer | Weight]:
        for thing in owned(node):
            if isinstance(thing, Layer):
                if thing.bound:
                    yield thing
            elif owner_length(thing, self.of[node]) >= len(scope):
                yield thing
