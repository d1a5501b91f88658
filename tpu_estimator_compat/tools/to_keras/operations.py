"""What an operation of TensorFlow is in Keras: the table.

An operation that it lacks is written as TensorFlow's own, `tf.raw_ops.NAME`, unless it has state.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import op_def_registry
from tpu_estimator_compat.tools.to_keras import expressions as e
from tpu_estimator_compat.tools.to_keras.control_flow import BRANCHES, LOOPS
from tpu_estimator_compat.tools.to_keras.expressions import Rule, UnknownOperationError
from tpu_estimator_compat.tools.to_keras.graph import (
    EXPRESSION,
    FUNCTION,
    LAYER,
    SCAN,
    SIZE,
    SIZES,
    SOURCES,
    Node,
    Program,
)
from tpu_estimator_compat.tools.to_keras.literals import infix, literal
from tpu_estimator_compat.tools.to_keras.scans import places_of_results

_WRITTEN_APART = SOURCES | BRANCHES | LOOPS | {LAYER, SCAN}
FIRST_ALONE = frozenset(
    {
        "FusedBatchNorm",
        "FusedBatchNormV2",
        "FusedBatchNormV3",
        "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits",
    }
)
"""Operations with several outputs, of which the expression gives the first alone."""


def expression(node: Node, texts: list[str]) -> str:
    """The Python expression of a node's value; `texts` are those of its inputs.

    Raises:
      UnknownOperationError: the operation, with its attributes, has no form in Keras or in
        `tf.raw_ops`.
    """
    return (_of_tensorflow if needs_tensorflow(node) else RULES[node.kind])(node, texts)


def needs_tensorflow(node: Node) -> bool:
    """Whether the expression is one of TensorFlow: Keras has no such operation, or no strings."""
    if node.kind in _WRITTEN_APART | {EXPRESSION, SIZE, SIZES}:
        return False
    strings = any(value.dtype == "string" for value in [*node.inputs, *node.outputs])
    return strings or node.kind not in RULES


def refused(program: Program) -> list[str]:
    """A line for each operation that has no form, with its place; empty if all have one."""
    found = []
    taken = set(program.users()) | set(program.outputs.values())
    for node in program.nodes():
        found += [line for body in node.bodies.values() for line in refused(body)]
        try:
            if node.kind == SCAN:
                places_of_results(node)
            elif node.kind not in _WRITTEN_APART:
                expression(node, ["x"] * len(node.inputs))
            if node.kind in FIRST_ALONE and taken.intersection(node.outputs[1:]):
                raise UnknownOperationError("more than its first output is used")
        except UnknownOperationError as error:
            found.append(f"{node.name} ({node.kind}) {node.place}".rstrip() + f": {error}")
    return found


def _of_tensorflow(node: Node, texts: list[str]) -> str:
    definition = op_def_registry.get(node.kind)
    if definition is None or definition.is_stateful or node.bodies:
        raise UnknownOperationError("it has no form in Keras")
    inputs, attributes = raw_arguments(node, texts)
    given = {k: v if isinstance(v, str) else f"[{', '.join(v)}]" for k, v in inputs.items()}
    given.update({k: literal(v) for k, v in attributes.items()})
    return f"tf.raw_ops.{node.kind}({', '.join(f'{k}={v}' for k, v in given.items())})"


def raw_arguments(node: Node, inputs: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keyword arguments of `tf.raw_ops`' function: inputs, and attributes without defaults."""
    definition = op_def_registry.get(node.kind)
    names = list(inspect.signature(getattr(tf.raw_ops, node.kind)).parameters)
    left, given, inferred = list(inputs), {}, set()
    for name, each in zip(names, definition.input_arg, strict=False):
        inferred |= {each.type_attr, each.number_attr, each.type_list_attr}
        several = each.number_attr or each.type_list_attr
        if several:
            number = node.attrs[several]
            count = number if isinstance(number, int) else len(number)
            given[name], left = left[:count], left[count:]
        else:
            given[name] = left.pop(0)
    attributes = {}
    for each in definition.attr:
        value = node.attrs.get(each.name)
        if each.name in names and each.name not in inferred and value is not None:
            default = each.default_value
            defaults = (default.s.decode(errors="replace"), default.i, default.f, default.b)
            if not each.HasField("default_value") or value not in defaults:
                attributes[each.name] = value
    return given, attributes


def _same_names() -> dict[str, Rule]:
    """Operations that Keras has under a name like TensorFlow's, of inputs alone."""
    names = (
        "Abs:absolute Acos:arccos Acosh:arccosh Asin:arcsin Asinh:arcsinh Atan:arctan "
        "Atan2:arctan2 Atanh:arctanh BroadcastTo:broadcast_to Ceil:ceil Conj:conj Cos:cos "
        "Cosh:cosh DivNoNan:divide_no_nan Elu:elu Equal:equal Erf:erf Erfinv:erfinv Exp:exp "
        "Expm1:expm1 Floor:floor Imag:imag IsFinite:isfinite IsInf:isinf IsNan:isnan Log:log "
        "Log1p:log1p LogSoftmax:log_softmax LogicalAnd:logical_and LogicalNot:logical_not "
        "LogicalOr:logical_or Maximum:maximum Minimum:minimum Neg:negative NotEqual:not_equal "
        "OnesLike:ones_like Pow:power Real:real Relu6:relu6 Relu:relu Rint:round Round:round "
        "Rsqrt:rsqrt Selu:selu Sigmoid:sigmoid Sign:sign Sin:sin Sinh:sinh Softmax:softmax "
        "Softplus:softplus Softsign:softsign Sqrt:sqrt Square:square Tan:tan Tanh:tanh "
        "ZerosLike:zeros_like BitwiseAnd:bitwise_and BitwiseOr:bitwise_or Cholesky:cholesky "
        "StopGradient:stop_gradient BitwiseXor:bitwise_xor MatrixInverse:inv LogicalXor:logical_xor"
    )
    pairs = (pair.split(":") for pair in names.split())
    return {kind: e.function(name) for kind, name in pairs}


_OPERATORS = {"AddV2": "+", "Add": "+", "Sub": "-", "Mul": "*", "RealDiv": "/"}
_OPERATORS |= {"FloorDiv": "//", "FloorMod": "%", "Less": "<", "LessEqual": "<="}
_OPERATORS |= {"Greater": ">", "GreaterEqual": ">="}
RULES: dict[str, Rule] = {
    **_same_names(),
    **{kind: e.operator(sign) for kind, sign in _OPERATORS.items()},
    "AddN": e.add_all,
    "All": e.reduction("all"),
    "Any": e.reduction("any"),
    "ArgMax": e.arg_best("argmax"),
    "ArgMin": e.arg_best("argmin"),
    "AvgPool": e.pool("average_pool"),
    "AvgPool3D": e.pool("average_pool"),
    "BatchMatMul": e.matmul,
    "BatchMatMulV2": e.matmul,
    "BatchMatMulV3": e.matmul,
    "BiasAdd": e.bias_add,
    "Cast": e.cast,
    "ClipByValue": e.function("clip"),
    "ConcatV2": e.concatenate,
    "Conv2D": e.convolution("conv"),
    "Conv3D": e.convolution("conv"),
    "Cumprod": e.running("cumprod"),
    "Cumsum": e.running("cumsum"),
    "Div": e.divide,
    "DepthwiseConv2dNative": e.convolution("depthwise_conv"),
    "Einsum": lambda node, t: e.called("einsum", literal(node.attrs["equation"]), *t),
    EXPRESSION: e.written,
    "ExpandDims": e.expand_dims,
    "Fill": e.full,
    FUNCTION: e.keras_function,
    "FusedBatchNorm": e.batch_norm,
    "FusedBatchNormV2": e.batch_norm,
    "FusedBatchNormV3": e.batch_norm,
    "GatherNd": e.gather_nd,
    "GatherV2": e.take,
    "InTopKV2": lambda node, t: e.called("in_top_k", t[1], t[0], k=e.Code(e.shape(node, 2, t))),
    "L2Loss": lambda node, t: infix(f"ops.sum(ops.square({t[0]}))", "/", "2"),
    "LeakyRelu": e.attribute_function("leaky_relu", negative_slope="alpha"),
    "MatMul": e.matmul,
    "MatrixDeterminant": e.function("det"),
    "MatrixBandPart": e.band_part,
    "Max": e.reduction("max"),
    "MaxPool": e.pool("max_pool"),
    "MaxPool3D": e.pool("max_pool"),
    "Mean": e.reduction("mean"),
    "Min": e.reduction("min"),
    "MirrorPad": e.pad,
    "OneHot": e.one_hot,
    "Pack": e.stack,
    "Pad": e.pad,
    "PadV2": e.pad,
    "Prod": e.reduction("prod"),
    "RandomStandardNormal": e.random("normal"),
    "RandomUniform": e.random("uniform"),
    "Range": lambda node, t: e.called("arange", *t),
    "Reshape": e.reshape,
    "Roll": e.of_arguments("roll", shift=1, axis=2),
    "ReverseV2": e.of_arguments("flip", axis=1),
    "Select": e.where,
    "SelectV2": e.where,
    "Shape": e.function("shape"),
    SIZE: e.size,
    SIZES: e.sizes,
    "Size": lambda node, t: e.called("size", *t),
    "Slice": e.sliced,
    "SoftmaxCrossEntropyWithLogits": e.cross_entropy("categorical_crossentropy"),
    "SparseSoftmaxCrossEntropyWithLogits": e.cross_entropy("sparse_categorical_crossentropy"),
    "Split": e.split,
    "SplitV": e.split,
    "SquaredDifference": lambda node, t: f"ops.square({infix(t[0], '-', t[1])})",
    "Squeeze": e.squeeze,
    "StridedSlice": e.strided_slice,
    "Sum": e.reduction("sum"),
    "Tile": e.of_arguments("tile", repeats=1),
    "TopKV2": lambda node, t: e.called("top_k", t[0], e.argument(node.inputs[1], t[1])),
    "Transpose": e.of_arguments("transpose", axes=1),
    "TruncatedNormal": e.random("truncated_normal"),
    "Unpack": e.unstack,
    "UnsortedSegmentSum": lambda node, t: e.called(
        "segment_sum", *t[:2], num_segments=e.Code(e.argument(node.inputs[2], t[2]))
    ),
}
