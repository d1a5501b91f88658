"""Puts calls of Keras' layers and functions into a program, in place of their operations."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.graph import Layer, Node, Program, Value, Weight
from tpu_estimator_compat.tools.to_keras.layers.building import Builder, Call, UnfitError, need
from tpu_estimator_compat.tools.to_keras.layers.matching import NODES, Found, Made, Matcher
from tpu_estimator_compat.tools.to_keras.layers.naming import name_layers
from tpu_estimator_compat.tools.to_keras.layers.patterns import STAGES
from tpu_estimator_compat.tools.to_keras.layers.recurrent import find_recurrent
from tpu_estimator_compat.tools.to_keras.reading import computed

_ACTIVATIONS = "Elu Relu Relu6 Selu Softplus Softsign Tanh"
"""Those of layers. A loss may take what a sigmoid or softmax is given, in one mode alone."""


def recognize(program: Program, variables: Mapping[str, Weight] | None = None) -> None:
    """Replaces operations of a simplified program by layers and functions, in place.

    Args:
      variables: all variables by name. A batch normalization of training is a layer only with
        these: its program does not use the averages.
    """
    find_recurrent(program)
    _Recognizer(program, variables or {}).run()


class _Recognizer:
    def __init__(self, program: Program, variables: Mapping[str, Weight]):
        self._programs = list(program.programs())
        self._variables = {**program.weights(), **variables}
        self._known: set[Node] = set()
        self._users: dict[Value, list[Node | Program]] = collections.defaultdict(list)
        self._layers: dict[Any, Layer] = {}
        self._calls: dict[Layer, list[Node]] = collections.defaultdict(list)
        self._owners: dict[Weight, Layer] = {}
        self._arranged: dict[Weight | None, Made] = {}
        for each in self._programs:
            for node in each.nodes():
                self._enter(node)
                if node.kind == g.LAYER:
                    self._calls[node.layer].append(node)
                    self._owners.update(dict.fromkeys(node.layer.weights, node.layer))
            for value in each.outputs.values():
                self._users[value].append(each)

    def run(self) -> None:
        for stage in STAGES:
            for program in self._programs:
                for node in reversed(program.nodes()):
                    if node.kind not in g.SOURCES:
                        self._match(node, stage)
        for layer in list(self._calls):
            self._fold_bias(layer)
            self._fold_activation(layer)
        self._restore_order()
        name_layers(self._calls)

    def _match(self, node: Node, stage: Sequence[tuple[Matcher, Builder]]) -> None:
        if [value for value in node.outputs if self._users[value]] != node.outputs[:1]:
            return
        for matcher, build in stage:
            for found in matcher(node.outputs[0], {}):
                if stage is not STAGES[0] and not self._is_closed(found):
                    continue
                with contextlib.suppress(UnfitError):
                    self._place(build(found, self._variables), node)
                    return

    def _is_closed(self, found: Found) -> bool:
        """Whether nobody else takes a value of the operations before the last."""
        nodes: list[Any] = [*found[NODES]]
        inner = [value for node in nodes[1:] for value in node.outputs]
        return all(user in nodes for value in inner for user in self._users[value])

    def _place(self, call: Call | Value, old: Node) -> None:
        """Puts a call in an operation's place."""
        made = old.outputs[0]
        if isinstance(call, Value):
            self._replace(made, call)
            return
        if call.name.startswith("ops."):
            attrs = {"function": call.name, "options": call.options}
            node = Node(g.FUNCTION, old.name, call.inputs, attrs, place=old.place)
            self._replace(made, node.output(made.shape, made.dtype))
            return
        layer = self._layer_of(call, old)
        node = Node(g.LAYER, old.name, call.inputs, {"layer": layer}, place=old.place)
        if old.attrs.get("is_training"):  # its average of variances is another than Keras'
            node.attrs["fused"] = True
        self._calls[layer].append(node)
        new = call.after(node) if call.after else node.output(made.shape, made.dtype)
        self._replace(made, new)

    def _layer_of(self, call: Call, old: Node) -> Layer:
        dtype = old.outputs[0].dtype
        need(
            "float" in dtype or call.after,
            all(made.weight.dtype == dtype for made in call.bound.values()),
        )
        other = {} if dtype == "float32" or "int" in dtype else {"dtype": dtype}
        options = {**call.options, **other}
        key = (call.name, repr(call.args), repr(options), tuple(call.bound.items()))
        if call.bound and key in self._layers:
            return self._layers[key]
        need(not any(made.weight in self._owners for made in call.bound.values()))
        layer = Layer(call.name, "", (), call.args, options, {}, call.call)
        self._layers[key] = layer
        for path, made in call.bound.items():
            self._bind(layer, path, made)
        return layer

    def _bind(self, layer: Layer, path: str, made: Made) -> None:
        layer.bound[path] = made.bound()
        self._owners[made.weight] = layer
        if made.arranged:
            self._arranged[made.weight] = made

    def _restore_order(self) -> None:
        """Makes, of a layer's weight, the array that others know as the variable."""
        for value in [v for v in self._users if v.weight in self._arranged]:
            made = self._arranged[value.weight]
            value.shape = made.shape
            new = computed(made.restore, value, name=value.node.name)
            for user in self._users[value]:
                if isinstance(user, Node):
                    user.inputs = [new if each is value else each for each in user.inputs]

    def _fold_bias(self, layer: Layer) -> None:
        if layer.options.get("use_bias", layer.cls != "layers.EinsumDense"):
            return
        nodes = self._calls[layer]
        adds = [self._only_user(node) for node in nodes]
        [bias, *more] = {self._bias_of(layer, *pair) for pair in zip(nodes, adds, strict=True)}
        if bias is None or more or bias.weight in self._owners or self._takers(bias) - {*adds}:
            return
        self._bind(layer, "bias", bias)
        if layer.options.pop("use_bias", None) is None:
            equation = layer.args[0]
            layer.options["bias_axes"] = equation[len(equation) - len(bias.shape) :]
        self._swallow(layer, adds)

    def _takers(self, made: Made) -> set[Any]:
        """Those who take a variable, also in another shape."""
        found: set[Any] = set()
        left = [value for value in self._users if value.weight is made.weight]
        while left:
            for user in self._users[left.pop()]:
                if isinstance(user, Node) and Made.of(user.outputs[0]):
                    left += user.outputs
                else:
                    found.add(user)
        return found

    def _bias_of(self, layer: Layer, node: Node, add: Node | None) -> Made | None:
        if add is None or add.kind not in ("AddV2", "BiasAdd"):
            return None
        given = [value for value in add.inputs if value is not node.outputs[0]]
        made = Made.of(given[0]) if len(given) == 1 else None
        shape = node.outputs[0].shape
        if made is None or shape is None or made.weight.dtype != node.outputs[0].dtype:
            return None
        first = layer.options.get("data_format") == "channels_first"
        by_name = add.kind == "BiasAdd"
        if by_name and (add.attrs.get("data_format") == "NCHW") != first and len(shape) > 2:
            return None
        if layer.cls == "layers.EinsumDense":
            axes = len(made.trailing)
            fits = 0 < axes < len(shape) and shape[-axes:] == made.trailing
            return made.reshaped(*made.trailing) if fits else None
        wanted: tuple[Any, ...] = (shape[1 if first else -1],)
        if first and not by_name:
            wanted += (1,) * (len(shape) - 2)
        return made.reshaped(made.size) if made.trailing == wanted else None

    def _fold_activation(self, layer: Layer) -> None:
        if not any(name in layer.cls for name in ("Dense", "Conv")):
            return
        nodes = self._calls[layer]
        users = [self._only_user(node) for node in nodes]
        [name, *more] = {_activation(*pair) for pair in zip(nodes, users, strict=True)}
        if name is not None and not more:
            layer.options["activation"] = name
            self._swallow(layer, users)

    def _swallow(self, layer: Layer, users: Iterable[Node | None]) -> None:
        """Lets a layer's calls take the place of the operations after them."""
        for node, user in zip(self._calls[layer], users, strict=True):
            assert user is not None
            before, old = node.outputs[0], user.outputs[0]
            node.outputs = []
            after = node.output(old.shape, old.dtype)
            self._replace(old, after)
            self._replace(before, after)  # the nodes that ask for its size

    # the graph

    def _enter(self, node: Node) -> None:
        """Counts a new node, and new ones that it takes values of, among the users."""
        if node in self._known:
            return
        self._known.add(node)
        for value in node.inputs:
            self._users[value].append(node)
            self._enter(value.node)

    def _only_user(self, node: Node) -> Node | None:
        """The only one that takes a node's first value, once; its size may be asked for too."""
        users = [u for u in self._users[node.outputs[0]] if getattr(u, "kind", "") != g.SIZE]
        return users[0] if len(users) == 1 and isinstance(users[0], Node) else None

    def _replace(self, old: Value, new: Value) -> None:
        """Gives the users of a value another one."""
        self._enter(new.node)
        for user in self._users.pop(old, []):
            if isinstance(user, Program):
                user.outputs = {k: new if v is old else v for k, v in user.outputs.items()}
            else:
                user.inputs = [new if value is old else value for value in user.inputs]
            self._users[new].append(user)
        self._forget(old.node)

    def _forget(self, node: Node) -> None:
        """Takes a node whose values nobody takes from the users of its inputs."""
        if any(self._users.get(value) for value in node.outputs):
            return
        inputs, node.inputs = node.inputs, []
        for value in inputs:
            if node in self._users[value]:
                self._users[value].remove(node)
            self._forget(value.node)


def _activation(node: Node, user: Node | None) -> str | None:
    """The activation that the author gave to the layer itself, by the scope of its operation."""
    if user is None or node.scope[: len(user.scope)] != user.scope:
        return None
    if not all(part[:1].isupper() for part in node.scope[len(user.scope) :]):
        return None
    return user.kind.lower() if user.kind in _ACTIVATIONS.split() else None
