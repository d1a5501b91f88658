"""Sizes where they are used, so that no part takes or gives one: Keras passes tensors alone."""

from __future__ import annotations

from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    SIZE,
    SIZES,
    SOURCES,
    Node,
    Program,
    Value,
)
from tpu_estimator_compat.tools.to_keras.simplify import is_size


def localize(program: Program) -> None:
    """Gives each operation that takes a size of a tensor an own one, made in its scope."""
    made: dict[tuple[object, ...], Value] = {}

    def local(value: Value, scope: tuple[str, ...]) -> Value:
        node = value.node
        if node.kind == CONSTANT:
            return value
        inputs = node.inputs if node.kind == SIZE else [local(v, scope) for v in node.inputs]
        key = (scope, node.kind, *inputs, str(node.attrs))
        if key not in made:
            copy = Node(node.kind, "/".join((*scope, "size")), list(inputs), dict(node.attrs))
            made[key] = copy.output(value.shape, value.dtype)
        return made[key]

    for node in program.nodes():
        if node.kind not in SOURCES and not any(map(is_of_sizes, node.outputs)):
            node.inputs = [local(v, node.scope) if is_of_sizes(v) else v for v in node.inputs]


def is_of_sizes(value: Value) -> bool:
    return value.node.kind == SIZES or is_size(value)
