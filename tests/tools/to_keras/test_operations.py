"""Each operation of the table gives what TensorFlow's gives."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras import operations
from tpu_estimator_compat.tools.to_keras.graph import EXPRESSION, FUNCTION, SIZE, SIZES
from tpu_estimator_compat.tools.to_keras.reading import read
from tpu_estimator_compat.tools.to_keras.simplify import simplify

from .evaluating import evaluated

v1, raw = tf.compat.v1, tf.raw_ops
X, Y = (np.random.RandomState(i).uniform(-0.9, 0.9, (2, 3, 4)).astype("f4") for i in (0, 1))
POSITIVE = np.abs(X) + 1
IMAGE = np.random.RandomState(2).normal(size=(2, 6, 6, 3)).astype("f4")
IDS = np.array([[0, 2, 1], [1, 1, 0]], np.int32)
BOTH = [X > 0, Y > 0]
SQUARE = np.eye(3, dtype="f4") * 2 + 0.5
CHANNEL = np.random.RandomState(4).uniform(0.5, 1, 3).astype("f4")

ELEMENTWISE = {
    "Abs Acos Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Erfc Erfinv Exp Expm1 Floor": X,
    "IsFinite IsInf IsNan LogSoftmax Neg OnesLike Relu Relu6 Rint Round Selu Sigmoid": X,
    "Sign Sin Sinh Softmax Softplus Softsign Square Tan Tanh ZerosLike": X,
    "Acosh Inv Log Log1p MatrixDiag Reciprocal Rsqrt Sqrt": POSITIVE,
    "Cholesky MatrixInverse MatrixDeterminant MatrixDiagPart": SQUARE,
    "LogicalNot": X > 0,
    "Invert": IDS,
    "RGBToHSV": np.abs(IMAGE),
}
OF_TWO = {
    "AddV2 Add Atan2 Div Sub Mul RealDiv DivNoNan FloorDiv FloorMod Less LessEqual": [X, Y],
    "Greater GreaterEqual Equal NotEqual Maximum Minimum SquaredDifference": [X, Y],
    "Pow": [POSITIVE, Y],
    "Cross": [IMAGE, IMAGE[:, ::-1]],
    "LogicalAnd LogicalOr": BOTH,
    "MatrixSetDiag": [X[:, :, :3], Y[:, :, 0]],
    "BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift FloorDiv FloorMod": [IDS + 5, IDS + 2],
}
ROWS = {
    "AddN": (lambda x, y: tf.add_n([x, y, x]), X, Y),
    "All": (lambda x: tf.reduce_all(x > 0, [0, 2]), X),
    "Any": (lambda x: tf.reduce_any(x > 0, -1, keepdims=True), X),
    "ArgMax": (lambda x: tf.argmax(x, -1), X),
    "ArgMin": (lambda x: tf.argmin(x, 1), X),
    "BatchMatMulV2": (lambda x, y: tf.matmul(x, y, transpose_b=True), X, Y),
    "BatchMatMul": (lambda x, y: raw.BatchMatMul(x=x, y=y, adj_x=True), X, Y),
    "BatchMatMulV3": (lambda x, y: raw.BatchMatMulV3(x=x, y=y, Tout=tf.float32, adj_y=True), X, Y),
    "BiasAdd": (lambda x: tf.nn.bias_add(x, CHANNEL), IMAGE),
    "Bucketize": (lambda x: raw.Bucketize(input=x, boundaries=[-0.5, 0.1, 0.3]), X),
    "Cast": (lambda x: tf.cast(x * 10, tf.int32), X),
    "ClipByValue": (lambda x: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.1), X),
    "ConcatV2": (lambda x, y: tf.concat([x, y, x], 1), X, Y),
    "Cumprod": (lambda x: tf.math.cumprod(x, 1, exclusive=True), POSITIVE),
    "Cumprod of 0": (lambda x: tf.math.cumprod(tf.nn.relu(x), -1, exclusive=True), X),
    "Cumsum": (lambda x: tf.cumsum(x, 2, exclusive=True, reverse=True), X),
    "DepthToSpace": (lambda x: tf.nn.depth_to_space(tf.tile(x, [1, 1, 1, 4]), 2), IMAGE),
    "Einsum": (lambda x, y: tf.einsum("ijk,ilk->ijl", x, y), X, Y),
    "ExpandDims": (lambda x: tf.expand_dims(x, -2), X),
    "ExtractImagePatches": (
        lambda x: tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1] * 4, "SAME"),
        IMAGE,
    ),
    "Fill": (lambda x: tf.fill([tf.shape(x)[0], 3], x[0, 0, 0]), X),
    "GatherNd": (lambda x, i: tf.gather_nd(x, tf.stack([i[:, 0] % 2, i[:, 1]], -1)), X, IDS),
    "GatherNd of rows of unknown size": (
        lambda x: tf.gather_nd(tf.transpose(x, [1, 2, 0]), [[0, 1], [2, 3]]), X),
    "GatherV2 by batch": (lambda x, i: tf.gather(x, i, batch_dims=1), X, IDS),
    "GatherV2": (lambda x, i: tf.gather(x, i, axis=1), X, IDS),
    "InTopKV2": (lambda x, i: tf.math.in_top_k(i[0, :2], x[0, :2], 2), X, IDS),
    "L2Loss": (lambda x: tf.nn.l2_loss(x) * 0.1, X),
    "LeakyRelu": (lambda x: tf.nn.leaky_relu(x, 0.3), X),
    "LRN": (lambda x: tf.nn.local_response_normalization(x, 1, 2.0, 0.3, 0.75), IMAGE),
    "MatMul": (lambda x, y: tf.matmul(x[0], y[1], transpose_b=True), X, Y),
    "MatrixBandPart": (lambda x: tf.linalg.band_part(x, -1, 0), X),
    "MatrixBandPart above": (lambda x: tf.linalg.band_part(x, 1, -1), X),
    "MatrixDiagV3": (lambda x: tf.linalg.diag(x), X),
    "MatrixDiagV3 above": (lambda x: tf.linalg.diag(x, k=1), X),
    "MatrixDiagPartV3": (lambda x: tf.linalg.diag_part(x), X),
    "MatrixSetDiagV3": (lambda x: tf.linalg.set_diag(x[:, :, :3], x[:, 0, :3]), X),
    "Max": (lambda x: tf.reduce_max(x, 1), X),
    "Mean": (lambda x: tf.reduce_mean(x, [1, 2], keepdims=True), IMAGE),
    "Min": (lambda x: tf.reduce_min(x), X),
    "MirrorPad": (lambda x: tf.pad(x, [[0, 0], [1, 1], [2, 0]], "REFLECT"), X),
    "OneHot": (lambda i: tf.one_hot(i, 3, 2.0, -1.0), IDS),
    "Pack": (lambda x, y: tf.stack([x, y], 1), X, Y),
    "Pad": (lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]]), X),
    "PadV2": (lambda x: tf.pad(x, [[0, 1], [0, 0], [0, 0]], constant_values=-3.0), X),
    "Prod": (lambda x: tf.reduce_prod(x, 0), X),
    "Range": (lambda x: tf.range(tf.shape(x)[0] + 2), X),
    "Reshape": (lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), X),
    "Reshape by sizes": (lambda x: tf.reshape(x, [-1, tf.shape(x)[0], 2]), X),
    "ResizeBicubic": (lambda x: tf.image.resize(x, [9, 4], "bicubic"), IMAGE),
    "ResizeBilinear": (lambda x: v1.image.resize_bilinear(x, [9, 4]), IMAGE),
    "ResizeBilinear of corners": (lambda x: v1.image.resize_bilinear(x, [11, 1], True), IMAGE),
    "ResizeBilinear of centers": (lambda x: tf.image.resize(x, [9, 4]), IMAGE),
    "ResizeNearestNeighbor": (lambda x: v1.image.resize_nearest_neighbor(x, [12, 18]), IMAGE),
    "ResizeNearestNeighbor of corners": (
        lambda x: v1.image.resize_nearest_neighbor(x, [9, 12], True), IMAGE),
    "ReverseSequence": (lambda x, i: tf.reverse_sequence(x, i[:, 0] + 2, 1), X, IDS),
    "ReverseSequence of int64": (
        lambda i, n: tf.reverse_sequence(i, tf.cast(n[:, 0] + 2, tf.int64), 1), IDS, IDS),
    "Roll": (lambda x: tf.roll(x, [1, 2], [0, 1]), X),
    "ReverseV2": (lambda x: tf.reverse(x, [1]), X),
    "ScatterNd": (lambda x, i: tf.scatter_nd(i[:, :1], x, [5, 3, 4]), X, IDS),
    "Select": (lambda x, y: v1.where(x[:, 0, 0] > 0, x, y), X, Y),
    "SelectV2": (lambda x, y: tf.where(x > 0, x, y), X, Y),
    "Size": (lambda x: tf.size(x) * 2, X),
    "Slice": (lambda x: tf.slice(x, [0, 1, 0], [-1, 2, 3]), X),
    "SoftmaxCrossEntropyWithLogits": (
        lambda x, y: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(y), x), X, Y),
    "SparseSoftmaxCrossEntropyWithLogits": (
        lambda i, x: tf.nn.sparse_softmax_cross_entropy_with_logits(i, x), IDS, X),
    "SpaceToDepth": (lambda x: tf.nn.space_to_depth(x, 3), IMAGE),
    "Split": (lambda x: tf.split(x, 2, -1)[1], X),
    "SplitV of what is left": (lambda x: tf.split(x, [1, -1], -1)[1], X),
    "SplitV": (lambda x: tf.split(x, [1, 3], -1)[1], X),
    "Squeeze": (lambda x: tf.squeeze(x[:, :1, None], [1, 2]), X),
    "StridedSlice": (lambda x: x[:, None, 1:, ::2], X),
    "StridedSlice of the last": (lambda x: x[..., -1], X),
    "StridedSlice of one": (lambda x: x[1, :2], X),
    "Sum": (lambda x: tf.reduce_sum(x, -1, keepdims=True), X),
    "TensorScatterAdd": (lambda x: tf.tensor_scatter_nd_add(x, [[0, 1], [0, 1]], x[0, :2]), X),
    "TensorScatterUpdate": (lambda x: tf.tensor_scatter_nd_update(x, [[1]], x[:1]), X),
    "Tile": (lambda x: tf.tile(x, [1, 2, 1]), X),
    "TopKV2": (lambda x: tf.nn.top_k(x, 2)[1], X),
    "Transpose": (lambda x: tf.transpose(x, [0, 2, 1]), X),
    "Unpack": (lambda x: tf.unstack(x, axis=1)[2], X),
    "UnsortedSegmentSum": (lambda x, i: tf.math.unsorted_segment_sum(x[0], i[0], 4), X, IDS),
    "a range of floats": (lambda x: x + tf.range(0.0, 4.0), X),
    "a constant choice": (lambda x, y: tf.where(tf.constant(False), x, y), X, Y),
    "a constant of rank 2": (lambda x: tf.concat([tf.zeros([1, 4]), x[0]], 0), X),
    "a size": (lambda x: tf.cast(tf.shape(x)[0] * 3, tf.float32) * x, X),
    "only in TensorFlow": (lambda x: tf.math.lgamma(x), POSITIVE),
    "only in TensorFlow, with a number of 0": (
        lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x, min=0.0), X),
    "strings": (lambda i: tf.strings.to_hash_bucket_fast(tf.strings.as_string(i), 7), IDS),
}  # fmt: skip


OF_TENSORFLOW = [name for name in ROWS if name.startswith(("only in TensorFlow", "strings"))]
OF_TENSORFLOW += ["ResizeNearestNeighbor of corners", "MatrixDiagV3 above"]


def rows():
    found = dict(ROWS)
    for table in (ELEMENTWISE, OF_TWO):
        for names, given in table.items():
            for name in names.split():
                inputs = given if isinstance(given, list) else [given]
                key = name if name not in found else f"{name} of integers"
                found[key] = (lambda *x, op=name: _called(op, x), *inputs)
    return found


def _called(op, inputs):
    names = [a.name for a in operations.op_def_registry.get(op).input_arg]
    return getattr(raw, op)(**dict(zip(names, inputs, strict=True)))


def program_of(function, *arrays):
    graph = tf.Graph()
    with graph.as_default():
        inputs = {
            str(i): v1.placeholder(a.dtype, [None, *a.shape[1:]]) for i, a in enumerate(arrays)
        }
        return read(graph, inputs, {"y": function(*inputs.values())}, {}), graph, inputs


@pytest.mark.parametrize("row", rows())
def test_an_operation_does_the_same(row):
    function, *arrays = rows()[row]
    program, graph, inputs = program_of(function, *arrays)
    with v1.Session(graph=graph) as session:
        feeds = dict(zip(inputs.values(), arrays, strict=True))
        wanted = session.run(function_output(graph, program), feeds)
    simplify(program)
    assert operations.refused(program) == []
    needing = {node.kind for node in program.nodes() if operations.needs_tensorflow(node)}
    assert bool(needing) == (row in OF_TENSORFLOW), needing
    [found] = evaluated(program, dict(zip(inputs, arrays, strict=True)))
    found = np.asarray(found)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), rtol=2e-5, atol=1e-6)


def function_output(graph, program):
    value = program.outputs["y"]
    return graph.get_tensor_by_name(f"{value.node.name}:{value.index}")


def test_a_triangle_needs_no_tensorflow():
    program, *_ = program_of(*ROWS["MatrixBandPart"])
    assert not any(map(operations.needs_tensorflow, program.nodes()))


def test_all_operations_are_tried():
    random = {"RandomStandardNormal", "RandomUniform", "TruncatedNormal"}
    of_complex = {"Real", "Imag", "Conj"}
    made_by_steps = {SIZE, SIZES, FUNCTION, EXPRESSION, "Shape", "BroadcastTo", "LogicalXor"}
    made_by_steps |= {"StopGradient"}
    tried = {name.split()[0] for name in rows()}
    assert set(operations.RULES) - tried == random | of_complex | made_by_steps
