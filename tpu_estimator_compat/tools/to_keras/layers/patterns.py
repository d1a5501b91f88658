"""The table: what operations are a layer or a function of Keras."""

from __future__ import annotations

from tpu_estimator_compat.tools.to_keras.layers import bags, images
from tpu_estimator_compat.tools.to_keras.layers import building as b
from tpu_estimator_compat.tools.to_keras.layers.matching import Rules

_CHOSEN = "GatherV2(placed, chosen, 0), GatherV2(listed, chosen, 0)"
_FILLED = f"SparseFillEmptyRows({_CHOSEN}, _, 0)"
_LOOKED_UP = "GatherV2(weight.embeddings, Unique(numbers), 0), Unique(numbers)[1], rows"
_BAGS = [
    f"SparseSegment{kind}({inputs})"
    for kind in ("Mean", "Sum", "SqrtN")
    for inputs in (_LOOKED_UP, "weight.embeddings, numbers, rows")
]

RULES = Rules(
    {
        # what is sparse of a matrix of numbers: its places, and the numbers themselves
        "sparse": "Where(NotEqual(ids, number.absent))",
        "taken": "GatherNd(ids, sparse)",
        "values": "taken | StringToHashBucketFast(taken) | LookupTableFindV2(table, taken, _)",
        "columns": "Tile(_, _)",
        "places": "sparse | Cast(Transpose(Pack(_, columns), _))",
        "reshaped": "SparseReshape(places, _, _)",
        "placed": "reshaped | SparseReshape(reshaped, _, _)",
        "listed": "values | Reshape(ids, _) + number.count * columns",
        "chosen": "Reshape(Where(GreaterEqual(listed, 0)), _)",
        "numbers": f"{_FILLED}[1] | values",
        "rows": f"StridedSlice({_FILLED}, _, _, _) | StridedSlice(sparse, _, _, _)",
        "bag": " | ".join(_BAGS),
        "empty": f"Reshape({_FILLED}[2], _)",
        # normalization by moments of the input, or by the variables that average them
        "kept": "Mean(x, array.axes, keep_dims=True)",
        "mean": "kept | Squeeze(kept) | weight.moving_mean",
        "centered": "SquaredDifference(x, kept) | Square(x - kept)",
        "spread": "Mean(centered, array.axes, keep_dims=True)",
        "variance": "spread | Squeeze(spread) | weight.moving_variance",
        "shifted": "variance + number.epsilon",
        "deviation": "Sqrt(shifted) | shifted ** 0.5",
        "root": "Rsqrt(shifted) | 1 / deviation | shifted ** -0.5",
        "factor": "root * weight.gamma | root",
        "scaled": """(x - mean) * root * weight.gamma | (x - mean) / deviation * weight.gamma
            | (weight.gamma * (x - mean)) / deviation | (x - mean) * root
            | (x - mean) / deviation""",
        "normalized": """x * factor + (weight.beta - mean * factor) | x * factor + -mean * factor
            | scaled + weight.beta | scaled""",
        "grouped": "x * factor + (-mean * root * weight.gamma + weight.beta)",
        "flat": "Reshape(x, sizes)",
        "squares": "Square(x) | x * x | x ** 2",
        "mean_square": "Mean(squares, array.axes, keep_dims=True)",
        "rms_root": "Rsqrt(mean_square + number.epsilon)",
        # convolutions, also of a sequence as an image of height or width 1
        "given": "SpaceToBatchND(x, array.block, array.pads) | x",
        "image": "ExpandDims(given, number.axis) | given",
        "filtered": """Conv2D(image, weight.kernel) | Conv3D(given, weight.kernel)
            | DepthwiseConv2dNative(image, weight.kernel)""",
        "convolved": "Squeeze(filtered) | filtered",
        "depthwise": "DepthwiseConv2dNative(image, weight.depth)",
        "separable": "Conv2D(depthwise, weight.point)",
        "pooled": """MaxPool(image) | AvgPool(image) | MaxPool3D(given) | AvgPool3D(given)""",
        # dropout
        "uniform": "RandomUniform(_) | StatelessRandomUniformV2(_, _, _, _)",
        "kept_ones": "GreaterEqual(uniform, number.rate)",
        "grown": "x * number.scale | x / number.keep",
        "dropped": "Select(kept_ones, grown, 0) | grown * Cast(kept_ones)",
        # a step of a recurrent cell: its gates, and the states that it makes
        "gates": "BiasAdd(MatMul(ConcatV2(element, hidden, 1), weight.kernel), weight.bias)",
        "forget": "Sigmoid(Split(1, gates)[2] + number.forget_bias) | Sigmoid(Split(1, gates)[2])",
        "written": "Sigmoid(Split(1, gates)[0]) * Tanh(Split(1, gates)[1])",
        "next_memory": "memory * forget + written",
        "lstm": "Tanh(next_memory) * Sigmoid(Split(1, gates)[3])",
        "halves": "MatMul(element, weight.kernel) + MatMul(hidden, weight.recurrent_kernel)",
        "of_keras": "BiasAdd(halves, weight.bias)",
        "keras_written": "Sigmoid(Split(1, of_keras)[0]) * Tanh(Split(1, of_keras)[2])",
        "keras_memory": "Sigmoid(Split(1, of_keras)[1]) * memory + keras_written",
        "keras_lstm": "Tanh(keras_memory) * Sigmoid(Split(1, of_keras)[3])",
        "both": "Sigmoid(gates)",
        "reset": "ConcatV2(element, Split(1, both)[0] * hidden, 1)",
        "candidate": "Tanh(BiasAdd(MatMul(reset, weight.last_kernel), weight.last_bias))",
        "gru": "Split(1, both)[1] * hidden + (1 - Split(1, both)[1]) * candidate",
        "simple": "Tanh(gates)",
        "finished": "GreaterEqual(index, lengths)",
        # boolean_mask
        "flags": "Reshape(mask, _) | mask",
        "rows_of_flags": "Squeeze(Where(flags))",
        "selected": "GatherV2(Reshape(x, _), rows_of_flags, 0) | GatherV2(x, rows_of_flags, 0)",
        # repeat, by a mask of how many of the most copies each element has
        "copies": "Tile(ExpandDims(x, _), _)",
        "counted": "Less(Range(0, _, 1), ExpandDims(counts, -1))",
        "repeated": "GatherV2(Reshape(copies, _), Squeeze(Where(Reshape(counted, _))), 0)",
        # losses
        "ones": "Fill(_, 1) | OnesLike(_)",
        "present": "Fill(_, 1) | OnesLike(_)",
        "zeros": "ZerosLike(_) | 0",
        "nonzero": "Select(Equal(w, 0), zeros, ones)",
        "relu": "Select(GreaterEqual(x, zeros), x, zeros)",
        "below": "Select(GreaterEqual(x, zeros), -x, x)",
        "sparse_loss": "SparseSoftmaxCrossEntropyWithLogits(Reshape(x, _), Reshape(z, _))",
        # functions
        "cube": "x ** 3 | x * x * x | x * Square(x)",
        "bent": "Tanh(0.7978845608 * (x + 0.044715 * cube))",
        "erf": "Erf(x * 0.7071067811865476) | Erf(x / 1.4142135623730951)",
    }
)

Row = tuple[str, b.Builder]
OF_SPARSE: list[Row] = [
    ("Select(Tile(empty, _), ZerosLike(bag), bag) | Select(empty, ZerosLike(bag), bag)", bags.bag),
    ("bag", bags.bag),
    ("SparseToDense(sparse, _, values, number.fill)", bags.dense),
]
LOOKUPS: list[Row] = [("GatherV2(weight.embeddings, ids, 0)", b.embedding)]
OTHERS: list[Row] = [
    # functions of Keras
    ("0.5 * x * (1 + bent)", b.function("ops.gelu")),
    ("0.5 * x * (1 + erf)", b.function("ops.gelu", approximate=False)),
    ("0.5 * x * Erfc(-x * 0.7071067811865476)", b.function("ops.gelu", approximate=False)),
    ("Mean(selected, array.axes) | Sum(selected, array.axes)", b.of_selected),
    ("Reshape(repeated, _)", b.repeat),
    ("x * Sigmoid(x)", b.function("ops.silu")),
    ("LookupTableFindV2(table, x, default)", bags.found_in_table),
    ("Maximum(x, number.slope * x)", b.leaky_relu),
    ("x * Rsqrt(Maximum(Sum(squares, array.axes, keep_dims=True), number.least))", b.normalize),
    ("Transpose(Softmax(Transpose(x, array.order)), array.order)", b.softmax),
    ("Transpose(LogSoftmax(Transpose(x, array.order)), array.order)", b.softmax),
    ("DivNoNan(Sum(x, _), Sum(ones, _) | Sum(1 * ones, _))", b.mean),
    ("DivNoNan(Sum(x, _), Cast(Size(measured)) | Size(measured))", b.mean),
    ("Sum(nonzero * present, _) | Sum(nonzero, _)", b.count_nonzero),
    ("(relu - x * z) + Log1p(Exp(below))", b.binary_crossentropy),
    ("Reshape(sparse_loss, _)", b.sparse_crossentropy),
    # layers
    ("dropped", b.dropout),
    ("x / number.keep * Floor(number.keep + uniform)", b.dropout),
    ("normalized", b.normalization),
    ("Reshape(grouped, _)", b.group_normalization),
    (
        "Reshape(FusedBatchNormV3(flat, _, _, _, _), _) * weight.gamma + weight.beta",
        b.flat_normalization,
    ),
    ("x * rms_root * weight.scale", b.rms_normalization),
    ("FusedBatchNormV3(x, gamma, beta, averages, variances)", b.fused_batch_normalization),
    ("Reshape(MatMul(Reshape(x, _), weight.kernel, transpose_a=False), shape)", b.dense),
    ("MatMul(x, weight.kernel, transpose_a=False)", b.dense),
    ("BatchMatMulV2(x, weight.kernel, adj_x=False)", b.dense),
    ("Reshape(MatMul(Reshape(x, _), matrix, transpose_a=False), shape)", b.matmul),
    ("Einsum(x, weight.kernel) | Einsum(weight.kernel, x)", b.einsum_dense),
    ("Squeeze(separable) | Squeeze(BiasAdd(separable, weight.bias))", images.separable),
    ("separable", images.separable),
    ("BatchToSpaceND(convolved, array.block, array.crops)", images.convolution),
    ("convolved", images.convolution),
    (
        "Conv2D(x, kernel) | Conv3D(x, kernel) | DepthwiseConv2dNative(x, kernel)",
        images.of_computed_kernel,
    ),
    ("Conv2DBackpropInput(_, weight.kernel, x)", images.transposed),
    ("Conv3DBackpropInputV2(_, weight.kernel, x)", images.transposed),
    ("Squeeze(pooled) | pooled", images.pooling),
    ("Mean(x, array.axes) | Max(x, array.axes)", images.global_pooling),
]
STAGES = [
    [(RULES.compile(text), build) for text, build in rows] for rows in (OF_SPARSE, LOOKUPS, OTHERS)
]
"""A table belongs to what looks rows up, before it belongs to what multiplies with it."""
