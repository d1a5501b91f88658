"""What an operation of TensorFlow is in Keras: the table.

An operation that it lacks is written as TensorFlow's own, `tf.raw_ops.NAME`, unless it has state.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.tf_internals import op_def_registry
from tpu_estimator_compat.tools.to_keras import expressions as e
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.expressions import Rule, UnknownOperationError
from tpu_estimator_compat.tools.to_keras.graph import Node, Program
from tpu_estimator_compat.tools.to_keras.literals import infix, literal
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
        "Cross:cross Erfc:erfc Inv:reciprocal "
        "Invert:bitwise_invert LeftShift:bitwise_left_shift Reciprocal:reciprocal "
        "RGBToHSV:image.rgb_to_hsv RightShift:bitwise_right_shift "
        "StopGradient:stop_gradient BitwiseXor:bitwise_xor MatrixInverse:inv "
        "LogicalXor:logical_xor MatrixDeterminant:det"
    )
    pairs = (pair.split(":") for pair in names.split())
    return {kind: e.function(name) for kind, name in pairs}


_OPERATORS = {"AddV2": "+", "Sub": "-", "Mul": "*", "RealDiv": "/"}
_OPERATORS |= {"FloorDiv": "//", "FloorMod": "%", "Less": "<", "LessEqual": "<="}
_OPERATORS |= {"Greater": ">", "GreaterEqual": ">="}
_DIAGONALS = "Diag DiagV3 DiagPart DiagPartV3 SetDiag SetDiagV3"
RULES: dict[str, Rule] = {
    **_same_names(),
    **{kind: e.operator(sign) for kind, sign in _OPERATORS.items()},
    "AddN": e.add_all,
    "All": e.reduction("all"),
    "Any": e.reduction("any"),
    "ArgMax": e.form("ops.argmax({x0}, axis={c1})"),
    "ArgMin": e.form("ops.argmin({x0}, axis={c1})"),
    "BatchMatMulV2": e.matmul,
    "BiasAdd": e.bias_add,
    "Bucketize": e.form("ops.digitize({x0}, {boundaries})"),
    "Cast": e.form("ops.cast({x0}, {dtype})"),
    "ClipByValue": e.function("clip"),
    "ConcatV2": e.concatenate,
    "Cumprod": e.running("cumprod"),
    "Cumsum": e.running("cumsum"),
    "Div": e.divide,
    "DepthToSpace": e.form("ops.depth_to_space({x0}, {block_size})"),
    "Einsum": e.form("ops.einsum({equation}, {all})"),
    g.EXPRESSION: e.written,
    "ExpandDims": e.form("ops.expand_dims({x0}, axis={c1})"),
    "ExtractImagePatches": e.patches,
    "Fill": e.full,
    g.FUNCTION: e.keras_function,
    "GatherNd": e.gather_nd,
    "GatherV2": e.take,
    "InTopKV2": e.form("ops.in_top_k({x1}, {x0}, k={a2})"),
    "L2Loss": e.form("ops.sum(ops.square({x0})) / 2"),
    "LeakyRelu": e.form("ops.leaky_relu({x0}, negative_slope={alpha})"),
    "LRN": e.form("local_response_normalization({x0}, {depth_radius}, {bias}, {alpha}, {beta})"),
    "MatMul": e.matmul,
    "MatrixBandPart": e.band_part,
    **{f"Matrix{kind}": e.diagonal for kind in _DIAGONALS.split()},
    "Max": e.reduction("max"),
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
    "Range": e.arange,
    "Reshape": e.form("ops.reshape({x0}, {a1})"),
    "ResizeBicubic": e.resize("bicubic"),
    "ResizeBilinear": e.resize("bilinear"),
    "ResizeNearestNeighbor": e.resize("nearest"),
    "ReverseSequence": e.reverse_sequence,
    "Roll": e.form("ops.roll({x0}, shift={a1}, axis={a2})"),
    "ReverseV2": e.form("ops.flip({x0}, axis={a1})"),
    "ScatterNd": e.form("ops.scatter({x0}, {x1}, {a2})"),
    "Select": e.where,
    "SelectV2": e.where,
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
    "Split": e.split,
    "SplitV": e.split,
    "SquaredDifference": lambda node, t: f"ops.square({infix(t[0], '-', t[1])})",
    "Squeeze": e.squeeze,
    "StridedSlice": e.strided_slice,
    "Sum": e.reduction("sum"),
    "TensorScatterAdd": e.form('ops.scatter_update({all}, reduction="add")'),
    "TensorScatterUpdate": e.function("scatter_update"),
    "Tile": e.form("ops.tile({x0}, repeats={a1})"),
    "TopKV2": e.form("ops.top_k({x0}, {a1})"),
    "Transpose": e.form("ops.transpose({x0}, axes={a1})"),
    "TruncatedNormal": e.random("truncated_normal"),
    "Unpack": e.form("ops.unstack({x0}, {num}, axis={axis})"),
    "UnsortedSegmentSum": e.form("ops.segment_sum({x0}, {x1}, num_segments={a2})"),
}
