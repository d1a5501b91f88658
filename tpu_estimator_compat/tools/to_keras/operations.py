"""What an operation of TensorFlow is in Keras: the table.

An operation that it lacks is written as TensorFlow's own, `tf.raw_ops.NAME`, unless it has state.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import op_def_registry
from tpu_estimator_compat.tools.to_keras import expressions as e
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.expressions import Rule, UnknownOperationError
from tpu_estimator_compat.tools.to_keras.graph import Node, Program
from tpu_estimator_compat.tools.to_keras.literals import infix, literal, primary
from tpu_estimator_compat.tools.to_keras.scans import places_of_results

_WRITTEN_APART = g.SOURCES | {g.BRANCH, g.LAYER, g.LOOP, g.SCAN}
FIRST_ALONE = frozenset(
    {"FusedBatchNormV3", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"}
)
"""Operations with several outputs, of which the expression gives the first alone."""


def expression(node: Node, texts: list[str]) -> str:
    """The Python expression of a node's value; `texts` are those of its inputs.

    Raises:
      UnknownOperationError: the operation, with its attributes, has no form in Keras or in
        `tf.raw_ops`.
    """
    first = "[0]" * (node.kind in FIRST_ALONE)
    return _of_keras(node, texts) or _of_tensorflow(node, texts) + first


def _of_keras(node: Node, texts: list[str]) -> str:
    """Empty where Keras has no such operation, or no strings."""
    strings = any(value.dtype == "string" for value in [*node.inputs, *node.outputs])
    if node.kind in RULES and (not strings or node.kind in (g.EXPRESSION, g.SIZE, g.SIZES)):
        with contextlib.suppress(UnknownOperationError):
            return RULES[node.kind](node, list(texts))
    return ""


def needs_tensorflow(node: Node) -> bool:
    return node.kind not in _WRITTEN_APART and not _of_keras(node, ["x"] * len(node.inputs))


def refused(program: Program) -> list[str]:
    """A line for each operation that has no form, with its place; empty if all have one."""
    found = []
    taken = set(program.users()) | set(program.outputs.values())
    for node in program.nodes():
        found += [line for body in node.bodies.values() for line in refused(body)]
        try:
            if node.kind == g.SCAN:
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
            default = getattr(each.default_value, each.default_value.WhichOneof("value") or "s")
            default = default.decode(errors="replace") if isinstance(default, bytes) else default
            if not each.HasField("default_value") or value != default:
                attributes[each.name] = value
    return given, attributes


_SAME = (
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
    "Cross:cross Erfc:erfc Inv:reciprocal "
    "Invert:bitwise_invert LeftShift:bitwise_left_shift Reciprocal:reciprocal "
    "RGBToHSV:image.rgb_to_hsv RightShift:bitwise_right_shift "
    "StopGradient:stop_gradient BitwiseXor:bitwise_xor MatrixInverse:inv "
    "LogicalXor:logical_xor MatrixDeterminant:det"
)
"""Operations that Keras has under a name like TensorFlow's, of inputs alone."""
_OPERATORS = {"AddV2": "+", "Sub": "-", "Mul": "*", "RealDiv": "/"}
_OPERATORS |= {"FloorDiv": "//", "FloorMod": "%", "Less": "<", "LessEqual": "<="}
_OPERATORS |= {"Greater": ">", "GreaterEqual": ">="}
_SEVERAL: dict[str, Rule] = {
    "All Any Max Mean Min Prod Sum": e.reduction,
    "BatchMatMulV2 MatMul": e.matmul,
    "Cumprod Cumsum": e.running,
    "MatrixDiag MatrixDiagV3 MatrixDiagPart MatrixDiagPartV3": e.diagonal,
    "MatrixSetDiag MatrixSetDiagV3": e.diagonal,
    "MirrorPad Pad PadV2": e.pad,
    "Select SelectV2": e.where,
    "Split SplitV": e.split,
}
"""Rules of several kinds of operations."""
RULES: dict[str, Rule] = {
    **{kind: e.function(name) for kind, name in (each.split(":") for each in _SAME.split())},
    **{kind: e.operator(sign) for kind, sign in _OPERATORS.items()},
    **{kind: rule for kinds, rule in _SEVERAL.items() for kind in kinds.split()},
    "AddN": lambda _, t: functools.reduce(lambda a, b: infix(a, "+", b), t),
    "ArgMax": e.form("ops.argmax({x0}, axis={c1})"),
    "ArgMin": e.form("ops.argmin({x0}, axis={c1})"),
    "BiasAdd": e.bias_add,
    "Bucketize": e.form("ops.digitize({x0}, {boundaries})"),
    "Cast": e.form("ops.cast({x0}, {dtype})"),
    "ClipByValue": e.function("clip"),
    "ConcatV2": e.concatenate,
    "Div": e.divide,
    "DepthToSpace": e.form("ops.depth_to_space({x0}, {block_size})"),
    "Einsum": e.form("ops.einsum({equation}, {all})"),
    g.EXPRESSION: lambda node, t: node.attrs["text"].format(*map(primary, t)),
    "ExpandDims": e.form("ops.expand_dims({x0}, axis={c1})"),
    "ExtractImagePatches": e.patches,
    "Fill": e.full,
    g.FUNCTION: lambda node, t: e.called(node.attrs["function"], *t, **node.attrs["options"]),
    "GatherNd": e.gather_nd,
    "GatherV2": e.take,
    "InTopKV2": e.form("ops.in_top_k({x1}, {x0}, k={a2})"),
    "L2Loss": e.form("ops.sum(ops.square({x0})) / 2"),
    "LeakyRelu": e.form("ops.leaky_relu({x0}, negative_slope={alpha})"),
    "LRN": e.form("local_response_normalization({x0}, {depth_radius}, {bias}, {alpha}, {beta})"),
    "MatrixBandPart": e.band_part,
    "OneHot": e.one_hot,
    "Pack": e.stack,
    "RandomStandardNormal": e.random("normal"),
    "RandomUniform": e.random("uniform"),
    "Range": e.arange,
    "Reshape": e.form("ops.reshape({x0}, {a1})"),
    "ResizeBicubic": e.resize("bicubic"),
    "ResizeBilinear": e.resize("bilinear"),
    "ResizeNearestNeighbor": e.resize("nearest"),
    "ReverseSequence": e.reverse_sequence,
    "Roll": e.form("ops.roll({x0}, shift={a1}, axis={a2})"),
    "ReverseV2": e.form("ops.flip({x0}, axis={a1})"),
    "ScatterNd": e.form("ops.scatter({x0}, {x1}, {a2})"),
    "Shape": e.function("shape"),
    g.SIZE: e.form("ops.shape({x0})[{axis}]"),
    g.SIZES: e.sizes,
    "Size": e.function("size"),
    "Slice": e.sliced,
    "SoftmaxCrossEntropyWithLogits": e.form(
        "ops.categorical_crossentropy({x1}, {x0}, from_logits=True)"
    ),
    "SparseSoftmaxCrossEntropyWithLogits": e.form(
        "ops.sparse_categorical_crossentropy({x1}, {x0}, from_logits=True)"
    ),
    "SpaceToDepth": e.form("ops.space_to_depth({x0}, {block_size})"),
    "SquaredDifference": lambda node, t: f"ops.square({infix(t[0], '-', t[1])})",
    "Squeeze": e.squeeze,
    "StridedSlice": e.strided_slice,
    "TensorScatterAdd": e.form('ops.scatter_update({all}, reduction="add")'),
    "TensorScatterUpdate": e.function("scatter_update"),
    "Tile": e.form("ops.tile({x0}, repeats={a1})"),
    "TopKV2": e.form("ops.top_k({x0}, {a1})"),
    "Transpose": e.form("ops.transpose({x0}, axes={a1})"),
    "TruncatedNormal": e.random("truncated_normal"),
    "Unpack": e.form("ops.unstack({x0}, {num}, axis={axis})"),
    "UnsortedSegmentSum": e.form("ops.segment_sum({x0}, {x1}, num_segments={a2})"),
}
