"""Names of layers, by those that the author's scopes and variables have."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from tpu_estimator_compat.tools.to_keras.graph import Layer, Node

_PARTS = (
    "b beta bias biases depthwise_kernel depthwise_weights embedding_weights embeddings gamma "
    "kernel moving_mean moving_variance pointwise_kernel pointwise_weights recurrent_kernel scale "
    "w weight weights"
)
_OF_A_PART = frozenset(_PARTS.split())
"""Names of variables that are parts of a layer, which their scope names."""
_ENDING = re.compile(r"_(kernel|weights?|w|bias(es)?|b)$", re.IGNORECASE)


def name_layers(calls: Mapping[Layer, Sequence[Node]]) -> None:
    """Gives each layer its scope and name: those of its variables, or else of its operation."""
    owners: dict[str, set[Layer]] = collections.defaultdict(set)
    for layer in calls:
        for weight in layer.weights:
            owners[weight.name].add(layer)
    for layer, nodes in calls.items():
        names = [weight.name for weight in layer.weights]
        named = _by_weights(names, layer, owners) if names else _by_call(nodes[0], layer)
        layer.scope, layer.name = named
        for node in nodes:
            node.name = _place(node, layer)


def _place(node: Node, layer: Layer) -> str:
    """The name of a call: after the scope in which the layer was called, the layer's own."""
    for i, part in enumerate(node.scope):
        if without_number(part) == without_number(layer.name) and i >= len(node.scope) - 3:
            return "/".join(node.scope[: i + 1])
    return node.name


def common(scopes: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The innermost scope in which all are."""
    levels = map(set, zip(*scopes, strict=False))
    return tuple(name for [name] in itertools.takewhile(lambda each: len(each) == 1, levels))


def without_number(name: str) -> str:
    """A scope's name without what makes it unique, `_1`."""
    return re.sub(r"_\d+$", "", name)


def _by_weights(
    names: Sequence[str], layer: Layer, owners: Mapping[str, set[Layer]]
) -> tuple[tuple[str, ...], str]:
    paths = [re.sub(r"/part_\d+$", "", name).split("/") for name in names]
    scope = common([path[:-1] for path in paths])
    generic = all(path[-1].lower() in _OF_A_PART for path in paths)
    alone = not any(
        tuple(name.split("/")[:-1]) == scope and layer not in found
        for name, found in owners.items()
    )
    if scope and generic and alone:
        return scope[:-1], scope[-1]
    [own, *more] = {_ENDING.sub("", path[-1]) for path in paths}
    return scope, default_name(layer.cls) if more or own.lower() in _OF_A_PART else own


def _by_call(node: Node, layer: Layer) -> tuple[tuple[str, ...], str]:
    """For `dropout_1/dropout/SelectV2`, the name that the scopes begin with."""
    default = default_name(layer.cls)
    for i, part in enumerate(node.scope):
        if without_number(part) in (default, default.replace("_", "")):
            return node.scope[:i], part
    leaf = node.name.rpartition("/")[2]
    is_given = leaf[:1].islower() and without_number(leaf) not in ("add", "mul", "sub", "truediv")
    return node.scope, leaf if is_given else default


def default_name(cls: str) -> str:
    """Such as max_pooling2d for layers.MaxPooling2D."""
    return name_of(cls.rpartition(".")[2])


def name_of(scope: str) -> str:
    """A scope's name in snake case."""
    name = re.sub(r"(?<=[a-zA-Z0-9])(?=[A-Z][a-z])", "_", re.sub(r"\W", "_", scope))
    return name.strip("_").lower() or "part"


def base_of(name: str) -> str:
    """The same without its number."""
    return re.sub(r"_?\d*$", "", name_of(name)) or "part"
