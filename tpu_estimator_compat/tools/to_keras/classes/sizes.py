"""Sizes where they are used: of a tensor that is there, so that no part takes or gives one."""

from __future__ import annotations

import math

import numpy as np

from tpu_estimator_compat.tools.to_keras.graph import (
    CONSTANT,
    FUNCTION,
    INPUT,
    LAYER,
    SIZE,
    SIZES,
    SOURCES,
    Node,
    Program,
    Value,
)
from tpu_estimator_compat.tools.to_keras.simplify import is_size

_FIRST = """
BatchMatMul BatchMatMulV2 BatchMatMulV3 BiasAdd Cast Conv2D Conv3D DepthwiseConv2dNative MatMul
AvgPool MaxPool Softmax LogSoftmax Relu Relu6 Tanh Sigmoid Exp Log Rsqrt Sqrt Square Neg Abs
FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 Erf OneHot
"""
"""Operations whose result has the first dimension of their first input."""
_ANY = """
Add AddV2 Sub Mul RealDiv Maximum Minimum SquaredDifference Pow Equal NotEqual Less LessEqual
Greater GreaterEqual LogicalAnd LogicalOr SelectV2 AddN
"""
"""Those whose result has it of any input of the same rank."""
_OF_FIRST, _OF_ANY = frozenset(_FIRST.split()), frozenset(_ANY.split())


def localize(program: Program) -> None:
    """Gives each operation that takes a size of a tensor an own one, made in its scope."""
    batched: dict[Value, bool] = {}
    made: dict[tuple[object, ...], Value] = {}
    for node in program.nodes():
        batched.update((value, _is_batched(node, batched)) for value in node.outputs)
        if node.kind not in SOURCES and not _is_of_sizes(node):
            near = next((v for v in node.inputs if batched.get(v)), None)
            node.inputs = [
                _local(v, node.scope, near, batched, made) if _is_of_sizes(v.node) else v
                for v in node.inputs
            ]


def _is_of_sizes(node: Node) -> bool:
    return node.kind == SIZES or (len(node.outputs) == 1 and is_size(node.outputs[0]))


def _local(
    value: Value,
    scope: tuple[str, ...],
    near: Value | None,
    batched: dict[Value, bool],
    made: dict[tuple[object, ...], Value],
) -> Value:
    node = value.node
    if node.kind == CONSTANT:
        return value
    inputs = [_local(v, scope, near, batched, made) for v in node.inputs if node.kind != SIZE]
    if node.kind == SIZE:
        inputs = list(node.inputs)
        if node.attrs["axis"] == 0 and batched.get(inputs[0]):
            first = made.get((scope, "batch"))
            inputs = [first] if first else [near or inputs[0]]
            made.setdefault((scope, "batch"), inputs[0])
    key = (scope, node.kind, *inputs, str(node.attrs))
    if key not in made:
        copy = Node(node.kind, "/".join((*scope, "size")), inputs, dict(node.attrs))
        made[key] = copy.output(value.shape, value.dtype)
    return made[key]


def _is_batched(node: Node, batched: dict[Value, bool]) -> bool:
    """Whether the first dimension of a node's outputs is that of the model's features."""
    shapes = [value.shape for value in node.outputs]
    if not all(shape and shape[0] is None for shape in shapes) or not node.outputs:
        return False
    given = [batched.get(value, False) for value in node.inputs]
    rank = node.outputs[0].rank
    if node.kind == INPUT:
        return not node.attrs["key"].isdigit()
    if node.kind in _OF_FIRST or node.kind in (LAYER, FUNCTION):
        return bool(given) and given[0] and not node.attrs.get("transpose_a")
    if node.kind in _OF_ANY:
        return any(b and v.rank == rank for b, v in zip(given, node.inputs, strict=True))
    if node.kind == "Reshape":
        return _keeps_rows(node, given[0], batched)
    if node.kind == "Transpose":
        order = node.inputs[1].constant
        return given[0] and order is not None and int(order[0]) == 0
    if node.kind in ("Mean", "Sum", "Max", "Min", "ExpandDims"):
        axes = node.inputs[1].constant
        return given[0] and axes is not None and 0 not in np.atleast_1d(axes % (rank or 1))
    return False


def _keeps_rows(node: Node, given: bool, batched: dict[Value, bool]) -> bool:
    """Of a Reshape: whether the first size stays."""
    sizes = node.inputs[1].node
    if sizes.kind == SIZES and sizes.attrs["sizes"][0] is None:
        first = sizes.inputs[0].node
        return (
            first.kind == SIZE and first.attrs["axis"] == 0 and batched.get(first.inputs[0], False)
        )
    rows = [(value.shape or ())[1:] for value in (node.inputs[0], node.outputs[0])]
    products = [None if None in row else math.prod(size or 0 for size in row) for row in rows]
    return given and products[0] == products[1] is not None
