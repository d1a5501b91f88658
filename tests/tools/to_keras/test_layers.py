"""Layers are recognized in small graphs, and compute what TensorFlow's session did."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tools.to_keras import running

import tpu_estimator_compat.v1 as tf1
from tpu_estimator_compat.tools.to_keras import graph as g
from tpu_estimator_compat.tools.to_keras.layers import recognize
from tpu_estimator_compat.tools.to_keras.simplify import simplify

slim = tf1.contrib.layers
v1 = tf.compat.v1
F = "float32"
VECTOR = {"x": (F, (None, 3))}
SEQUENCE = {"x": (F, (None, 4, 3))}
LONG = {"x": (F, (None, 9, 3))}
IMAGE = {"x": (F, (None, 9, 9, 3))}
IDS = {"x": ("int32", (None, 4))}


def weight(name, *shape):
    return v1.get_variable(name, shape)


def by_hand(x):
    with v1.variable_scope("block"):
        y = v1.nn.relu(v1.matmul(x, weight("w1", 3, 4)) + weight("b1", 4))
    return v1.nn.softmax(v1.matmul(y, weight("out_weights", 4, 2)) + weight("out_bias", 2))


def twice(x):
    x = tf1.layers.dense(x, 3, tf.nn.relu, name="shared")
    return tf1.layers.dense(x, 3, tf.nn.relu, name="shared", reuse=True)


def one_bias_for_two(x):
    bias = weight("bias", 3)
    return (v1.matmul(x, weight("a", 3, 3)) + bias) * (v1.matmul(x, weight("c", 3, 3)) + bias)


def turned(x):
    table = weight("table", 6, 3)
    return v1.matmul(x, table, transpose_b=True) * v1.reduce_sum(table[1]) + v1.nn.l2_loss(table)


def tied(x):
    table = weight("words", 7, 4)
    hidden = tf1.layers.dense(v1.nn.embedding_lookup(table, x), 4, name="hidden")
    return v1.tensordot(hidden, table, [[2], [1]])


def heads(x):
    kernel, bias = weight("query/kernel", 3, 6), weight("query/bias", 6)
    product = v1.einsum("abc,cde->abde", x, v1.reshape(kernel, [3, 2, 3]))
    return product + v1.reshape(bias, [2, 3])


def one_hot(x):
    return v1.matmul(v1.one_hot(v1.reshape(x, [-1]), 5), weight("types", 5, 4))


def padded(x):
    x = v1.pad(x, [[0, 0], [1, 1], [2, 1], [0, 0]])
    return tf1.layers.conv2d(x, 4, 3, 2, use_bias=False)


def normalized(x, epsilon=1e-6, outside=0.0, axis=-1):
    mean, variance = v1.nn.moments(x, [axis], keepdims=True)
    gamma, beta = weight("norm/gamma", x.shape[-1]), weight("norm/beta", x.shape[-1])
    return gamma * (x - mean) / _plus(v1.sqrt(variance + epsilon), outside) + beta


def gamma_of_rows(x):
    mean, variance = v1.nn.moments(x, [2], keepdims=True)
    return (x - mean) * v1.rsqrt(variance + 1e-6) * weight("gamma", 3, 1)


def _plus(x, number):
    return x + number if number else x


def by_rms(x):
    scale = weight("norm/scale", 3)
    return scale * (x * v1.rsqrt(v1.reduce_mean(v1.square(x), -1, keepdims=True) + 1e-6))


def gelu(x):
    return x * (0.5 * (1.0 + v1.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * v1.pow(x, 3)))))


def averaged(x, **options):
    return tf1.layers.batch_normalization(x, training=True, **options)


def ones_of_batch(x):
    return x + tf.fill([tf.shape(x)[0], 1], 1.0)


ROWS = {
    "dense": (
        lambda x: tf1.layers.dense(x, 5, tf.nn.relu),
        VECTOR,
        "dense: Dense(5, activation='relu')[kernel, bias]",
    ),
    "dense, and its size": (
        lambda x: ones_of_batch(tf1.layers.dense(x, 5, tf.nn.relu)),
        VECTOR,
        "dense: Dense(5, activation='relu')[kernel, bias]; Fill; AddV2",
    ),
    "dense of sequences": (
        lambda x: tf1.layers.dense(x, 5),
        SEQUENCE,
        "dense: Dense(5)[kernel, bias]",
    ),
    "dense of activated sequences": (
        lambda x: tf1.layers.dense(tf1.layers.dense(x, 5, tf.nn.relu), 2),
        {"x": (F, (None, None, 3))},
        "dense: Dense(5, activation='relu')[kernel, bias]; dense_1: Dense(2)[kernel, bias]",
    ),
    "dense by hand": (
        by_hand,
        VECTOR,
        "block/dense: Dense(4, activation='relu')[kernel, bias]; out: Dense(2)[kernel, bias]; "
        "Softmax",
    ),
    "one layer twice": (twice, VECTOR, "shared: Dense(3, activation='relu')[kernel, bias]"),
    "one bias for two": (
        one_bias_for_two,
        VECTOR,
        "a: Dense(3, use_bias=False)[kernel]; AddV2; c: Dense(3, use_bias=False)[kernel]; AddV2; "
        "Mul",
    ),
    "turned kernel": (
        turned,
        VECTOR,
        "table: Dense(6, use_bias=False)[kernel]; Transpose; StridedSlice; Sum; Mul; L2Loss; AddV2",
    ),
    "tied": (
        tied,
        IDS,
        "words: Embedding(7, 4)[embeddings]; hidden: Dense(4)[kernel, bias]; Transpose; "
        "ops.matmul()",
    ),
    "softmax of a layer": (
        lambda x: tf1.layers.dense(x, 5, tf.nn.softmax),
        VECTOR,
        "dense: Dense(5)[kernel, bias]; Softmax",
    ),
    "slim": (
        lambda x: slim.fully_connected(x, 4),
        VECTOR,
        "fully_connected: Dense(4, activation='relu')[kernel, bias]",
    ),
    "einsum as dense": (
        lambda x: v1.einsum("btc,cd->btd", x, weight("p/kernel", 3, 2)),
        SEQUENCE,
        "p: Dense(2, use_bias=False)[kernel]",
    ),
    "einsum of heads": (
        heads,
        SEQUENCE,
        "query: EinsumDense('abc,cde->abde', output_shape=(None, 2, 3), bias_axes='de')[kernel, "
        "bias]",
    ),
    "lookup by one-hot": (one_hot, IDS, "Reshape; OneHot; MatMul"),
    "embedding": (
        lambda x: v1.nn.embedding_lookup(weight("words", 7, 4), x),
        IDS,
        "words: Embedding(7, 4)[embeddings]",
    ),
    "conv1d": (
        lambda x: tf1.layers.conv1d(x, 5, 3, 2, activation=tf.nn.relu),
        LONG,
        "conv1d: Conv1D(5, 3, strides=2, activation='relu')[kernel, bias]",
    ),
    "conv1d dilated": (
        lambda x: tf1.layers.conv1d(x, 5, 3, dilation_rate=2, padding="same"),
        LONG,
        "conv1d: Conv1D(5, 3, padding='same', dilation_rate=2)[kernel, bias]",
    ),
    "conv2d": (
        lambda x: tf1.layers.conv2d(x, 5, (3, 2), (2, 1), "same"),
        IMAGE,
        "conv2d: Conv2D(5, (3, 2), strides=(2, 1), padding='same')[kernel, bias]",
    ),
    "conv2d dilated": (
        lambda x: tf1.layers.conv2d(x, 5, 3, dilation_rate=2),
        IMAGE,
        "conv2d: Conv2D(5, 3, dilation_rate=2)[kernel, bias]",
    ),
    "conv2d padded": (
        padded,
        IMAGE,
        "Pad; conv2d: Conv2D(4, 3, strides=2, use_bias=False)[kernel]",
    ),
    "conv2d of a computed kernel": (
        lambda x: v1.nn.conv2d(x, v1.abs(weight("kernel", 3, 3, 3, 2)), [1, 2, 2, 1], "SAME"),
        IMAGE,
        "Abs; ops.conv(strides=2, padding='same')",
    ),
    "conv2d padded by itself": (
        lambda x: v1.nn.conv2d(
            x, weight("c/kernel", 3, 3, 3, 2), 1, [[0, 0], [1, 1], [2, 0], [0, 0]]
        ),
        IMAGE,
        "Pad; c: Conv2D(2, 3, use_bias=False)[kernel]",
    ),
    "conv3d": (
        lambda x: tf1.layers.conv3d(x, 5, 2),
        {"x": (F, (None, 3, 3, 3, 2))},
        "conv3d: Conv3D(5, 2)[kernel, bias]",
    ),
    "depthwise": (
        lambda x: v1.nn.depthwise_conv2d(
            x, weight("dw/depthwise_weights", 3, 3, 3, 2), [1, 2, 2, 1], "SAME"
        ),
        IMAGE,
        "dw: DepthwiseConv2D(3, strides=2, padding='same', depth_multiplier=2, "
        "use_bias=False)[kernel]",
    ),
    "separable": (
        lambda x: tf1.layers.separable_conv2d(x, 5, 3, depth_multiplier=2),
        IMAGE,
        "separable_conv2d: SeparableConv2D(5, 3, depth_multiplier=2)[depthwise_kernel, "
        "pointwise_kernel, bias]",
    ),
    "separable of sequences": (
        lambda x: tf1.layers.separable_conv1d(x, 5, 3),
        LONG,
        "separable_conv1d: SeparableConv1D(5, 3)[depthwise_kernel, pointwise_kernel, bias]",
    ),
    "transposed": (
        lambda x: tf1.layers.conv2d_transpose(x, 5, 3, 2, "same", activation=tf.nn.tanh),
        IMAGE,
        "conv2d_transpose: Conv2DTranspose(5, 3, strides=2, padding='same', "
        "activation='tanh')[kernel, bias]",
    ),
    "transposed to an odd size": (
        lambda x: v1.nn.conv2d_transpose(
            x, weight("up/kernel", 5, 5, 2, 3), [v1.shape(x)[0], 17, 17, 2], 2
        ),
        IMAGE,
        "up: Conv2DTranspose(2, 5, strides=2, padding='same', use_bias=False, output_padding=0)"
        "[kernel]",
    ),
    "transposed in 3D": (
        lambda x: tf1.layers.conv3d_transpose(x, 2, 4, 2),
        {"x": (F, (None, 3, 3, 3, 2))},
        "conv3d_transpose: Conv3DTranspose(2, 4, strides=2)[kernel, bias]",
    ),
    "pooling": (
        lambda x: tf1.layers.average_pooling2d(tf1.layers.max_pooling2d(x, 2, 2), 3, 2, "same"),
        IMAGE,
        "max_pooling2d: MaxPooling2D(2); average_pooling2d: AveragePooling2D(3, strides=2, "
        "padding='same')",
    ),
    "pooling of sequences": (
        lambda x: tf1.layers.max_pooling1d(x, 3, 2),
        LONG,
        "max_pooling1d: MaxPooling1D(3, strides=2)",
    ),
    "global pooling": (
        lambda x: v1.reduce_mean(x, [1, 2]),
        IMAGE,
        "global_average_pooling2d: GlobalAveragePooling2D()",
    ),
    "mean of channels": (lambda x: v1.reduce_mean(x, [3]), IMAGE, "Mean"),
    "batch normalization": (
        lambda x: tf1.layers.batch_normalization(x, epsilon=1e-5),
        IMAGE,
        "batch_normalization: BatchNormalization(epsilon=1e-05)[gamma, beta, moving_mean, "
        "moving_variance]",
    ),
    "batch normalization of vectors": (
        lambda x: tf1.layers.batch_normalization(x, scale=False),
        VECTOR,
        "batch_normalization: BatchNormalization(scale=False)[beta, moving_mean, moving_variance]",
    ),
    "trained batch normalization": (
        averaged,
        IMAGE,
        "batch_normalization: BatchNormalization()[gamma, beta, moving_mean, "
        "moving_variance](training=training)",
    ),
    "trained batch normalization of vectors": (
        averaged,
        VECTOR,
        "batch_normalization: BatchNormalization()[gamma, beta, moving_mean, "
        "moving_variance](training=training)",
    ),
    "slim's batch normalization": (
        lambda x: slim.conv2d(x, 4, 1, normalizer_fn=slim.batch_norm),
        IMAGE,
        "Conv: Conv2D(4, 1, padding='same', use_bias=False)[kernel]; Conv/BatchNorm: "
        "BatchNormalization(scale=False)[beta, moving_mean, moving_variance](training=training); "
        "Relu",
    ),
    "slim's batch normalization of vectors": (
        lambda x: slim.fully_connected(x, 4, normalizer_fn=slim.batch_norm),
        VECTOR,
        "fully_connected: Dense(4, use_bias=False)[kernel]; Reshape; fully_connected/BatchNorm: "
        "BatchNormalization(scale=False)[beta, moving_mean, moving_variance](training=training); "
        "Reshape; Relu",
    ),
    "layer normalization": (
        normalized,
        SEQUENCE,
        "norm: LayerNormalization(epsilon=1e-06)[gamma, beta]",
    ),
    "layer normalization of slim": (
        lambda x: slim.layer_norm(x, begin_norm_axis=-1),
        SEQUENCE,
        "LayerNorm: LayerNormalization(epsilon=1e-12)[gamma, beta]",
    ),
    "layer normalization of all": (
        slim.layer_norm,
        SEQUENCE,
        "LayerNorm: GroupNormalization(groups=1, epsilon=1e-12)[gamma, beta]",
    ),
    "instance normalization": (
        slim.instance_norm,
        IMAGE,
        "InstanceNorm: GroupNormalization(groups=-1, epsilon=1e-06)[gamma, beta]",
    ),
    "group normalization": (
        lambda x: slim.group_norm(x, 3),
        {"x": (F, (None, 4, 4, 6))},
        "GroupNorm: GroupNormalization(groups=3, epsilon=1e-06)[gamma, beta]",
    ),
    "epsilon outside of the root": (
        lambda x: normalized(x, outside=0.1),
        VECTOR,
        "Mean; Sub; Mul; SquaredDifference; Mean; AddV2; Sqrt; AddV2; RealDiv; AddV2",
    ),
    "another axis": (
        lambda x: normalized(x, axis=1),
        IMAGE,
        "Mean; Sub; Mul; SquaredDifference; Mean; AddV2; Sqrt; RealDiv; AddV2",
    ),
    "gamma of another axis": (
        gamma_of_rows,
        {"x": (F, (None, 3, 3))},
        "layer_normalization: LayerNormalization(epsilon=1e-06, center=False, scale=False); Mul",
    ),
    "averages that train": (
        lambda x: (x - weight("a", 3)) * v1.rsqrt(weight("v", 3) + 1e-3),
        VECTOR,
        "Sub; AddV2; Rsqrt; Mul",
    ),
    "integers": (lambda x: v1.reduce_max(x, [1, 2]), {"x": ("int32", (None, 4, 4, 3))}, "Max"),
    "an einsum that sums": (
        lambda x: v1.einsum("btc,cd->bd", x, weight("p/kernel", 3, 2)),
        SEQUENCE,
        "Einsum",
    ),
    "RMS": (by_rms, SEQUENCE, "norm: RMSNormalization()[scale]"),
    "gelu by tanh": (gelu, VECTOR, "ops.gelu()"),
    "gelu": (tf.nn.gelu, VECTOR, "ops.gelu(approximate=False)"),
    "mean of a mask": (
        lambda x: v1.reduce_mean(v1.boolean_mask(x, x[..., 0] > 0)),
        SEQUENCE,
        "StridedSlice; Greater; ExpandDims; SelectV2; Sum; Cast; Sum; Mul; RealDiv",
    ),
    "sum of a mask": (
        lambda x: v1.reduce_sum(v1.boolean_mask(x[..., 0], x[..., 1] > 0)),
        SEQUENCE,
        "StridedSlice; Greater; StridedSlice; SelectV2; Sum",
    ),
    "mean of each column of a mask": (
        lambda x: v1.reduce_mean(v1.boolean_mask(x, x[:, 0] > 0), 0),
        VECTOR,
        "StridedSlice; Greater; Where; Squeeze; GatherV2; Mean",
    ),
    "repeat by a number each": (
        lambda x: v1.repeat(x, [2, 0, 1], axis=1),
        VECTOR,
        "GatherV2",
    ),
    "numbers that change nothing": (
        lambda x: tf.raw_ops.Add(x=0.0 + 1.0 * x, y=0.0),
        VECTOR,
        "",
    ),
    "swish": (v1.nn.swish, VECTOR, "ops.silu()"),
    "l2 normalize": (
        lambda x: v1.nn.l2_normalize(x, 1),
        VECTOR,
        "ops.normalize(axis=-1, epsilon=1e-06)",
    ),
    "leaky relu": (lambda x: v1.maximum(0.1 * x, x), VECTOR, "ops.leaky_relu(negative_slope=0.1)"),
}
"""By case: a graph, its inputs, and what is made of it, in order."""


cells = tf1.nn.rnn_cell
STEPS = {"x": (F, (None, 5, 3))}
LENGTHS = {**STEPS, "lengths": ("int32", (None,))}


def run_cell(cell, **options):
    def build(x, lengths=None):
        outputs, state = v1.nn.dynamic_rnn(cell(), x, lengths, dtype=F)
        kept = dict(enumerate([*v1.nest.flatten(state), outputs]))
        return {str(i): kept[i] for i in options.get("kept", kept)}

    return build


def both_ways(x, lengths):
    ways = [cells.GRUCell(2), cells.GRUCell(2)]
    outputs, _ = v1.nn.bidirectional_dynamic_rnn(*ways, x, lengths, dtype=F)
    return v1.concat(outputs, 2)


def shared_cell(x, lengths):
    cell = cells.GRUCell(2)
    return sum(v1.nn.dynamic_rnn(cell, x, lengths, dtype=F)[1] for _ in range(2))


def from_a_state(x):
    cell = cells.LSTMCell(2)
    state = cells.LSTMStateTuple(x[:, 0, :2], x[:, 1, 1:])
    turned = v1.transpose(x, [1, 0, 2])
    outputs, _ = v1.nn.dynamic_rnn(cell, turned, initial_state=state, time_major=True)
    return outputs * 2.0


MASK = "Range; ExpandDims; Less; "
ALL = "return_sequences=True, return_state=True"
OF_A_CELL = "[cell.kernel, cell.recurrent_kernel, cell.bias]"
RECURRENT = {
    "LSTM": (
        run_cell(lambda: cells.LSTMCell(2)),
        STEPS,
        f"rnn/lstm_cell: LSTM(2, {ALL}){OF_A_CELL}",
    ),
    "GRU of lengths": (
        run_cell(lambda: cells.GRUCell(2)),
        LENGTHS,
        f"{MASK}rnn/gru_cell: GRU(2, reset_after=False, {ALL}, zero_output_for_mask=True)"
        f"{OF_A_CELL}",
    ),
    "LSTM of unknown length": (
        run_cell(lambda: cells.LSTMCell(2)),
        {"x": (F, (None, None, 3)), "lengths": ("int32", (None,))},
        f"{MASK}rnn/lstm_cell: LSTM(2, {ALL}, zero_output_for_mask=True){OF_A_CELL}",
    ),
    "last output": (
        run_cell(lambda: cells.BasicLSTMCell(2, forget_bias=0.0), kept=[1]),
        LENGTHS,
        f"{MASK}rnn/basic_lstm_cell: LSTM(2){OF_A_CELL}",
    ),
    "outputs": (
        run_cell(lambda: cells.BasicRNNCell(2), kept=[1]),
        STEPS,
        f"rnn/basic_rnn_cell: SimpleRNN(2, return_sequences=True){OF_A_CELL}",
    ),
    "stack": (
        run_cell(lambda: cells.MultiRNNCell([cells.GRUCell(3), cells.GRUCell(2)]), kept=[2]),
        STEPS,
        "rnn/multi_rnn_cell/cell_0/gru_cell: GRU(3, reset_after=False, return_sequences=True)"
        f"{OF_A_CELL}; rnn/multi_rnn_cell/cell_1/gru_cell: "
        f"GRU(2, reset_after=False, return_sequences=True){OF_A_CELL}",
    ),
    "both ways": (
        both_ways,
        LENGTHS,
        f"{MASK}bidirectional_rnn/fw/gru_cell: GRU(2, reset_after=False, return_sequences=True, "
        f"zero_output_for_mask=True){OF_A_CELL}; {MASK}bidirectional_rnn/bw/gru_cell: GRU(2, "
        "reset_after=False, return_sequences=True, zero_output_for_mask=True, go_backwards=True)"
        f"{OF_A_CELL}; ReverseV2; ConcatV2",
    ),
    "from a state, by time": (
        from_a_state,
        STEPS,
        f"StridedSlice; StridedSlice; rnn/lstm_cell: LSTM(2, return_sequences=True){OF_A_CELL}; "
        "Transpose; Mul",
    ),
    "LSTM of Keras 2": (
        lambda x: tf_keras.layers.LSTM(2, return_sequences=True)(x),
        STEPS,
        "lstm/lstm_cell: LSTM(2, return_sequences=True)"
        "[cell.kernel, cell.bias, cell.recurrent_kernel]",
    ),
    "peepholes": (run_cell(lambda: cells.LSTMCell(2, use_peepholes=True)), STEPS, "Scan"),
    "of others too": (shared_cell, LENGTHS, "Scan; Scan"),
}
OF_INT64 = RECURRENT["both ways"][2].replace("Range; ", "Range; Cast; ")
RECURRENT["both ways of int64"] = (both_ways, {**STEPS, "lengths": ("int64", (None,))}, OF_INT64)


def bag(x, combiner="mean"):
    places = v1.where(v1.not_equal(x, 0))
    numbers = v1.SparseTensor(places, v1.gather_nd(x, places), v1.shape(x, out_type=v1.int64))
    table = weight("words", 7, 2)
    return v1.nn.embedding_lookup_sparse(table, numbers, None, combiner=combiner)


def columns(kind, *, of, layer=v1.feature_column.input_layer):
    def build(numbers, amounts):
        f = v1.feature_column
        column = f.categorical_column_with_identity("numbers", 4)
        if of == "amounts":
            column = f.bucketized_column(f.numeric_column("amounts", shape=(2,)), [-0.5, 0.5])
        made = kind(f, column)
        return layer({"numbers": numbers, "amounts": amounts}, [made])

    return build


FEATURES = {"numbers": ("int64", (None, 4)), "amounts": (F, (None, 2))}
SUM = "Cast; ExpandDims; Mul; Sum; "
MEAN = f"{SUM}Sum; Maximum; "
LINEAR = {"layer": v1.feature_column.linear_model}


def bag_with_default(x):
    places = v1.where(v1.not_equal(x, -1))
    numbers = v1.SparseTensor(places, v1.gather_nd(x, places), v1.shape(x, out_type=v1.int64))
    return v1.nn.safe_embedding_lookup_sparse(weight("words", 7, 2), numbers, default_id=0)


BAGS = {
    "bag with a row for none": (bag_with_default, {"x": ("int64", (None, 4))}, None),
    "bag": (bag, IDS, f"NotEqual; SelectV2; words: Embedding(7, 2)[embeddings]; {MEAN}RealDiv"),
    "bag by root": (
        lambda x: bag(x, "sqrtn"),
        IDS,
        f"NotEqual; SelectV2; words: Embedding(7, 2)[embeddings]; {MEAN}Sqrt; RealDiv",
    ),
    "embedding column": (
        columns(lambda f, column: f.embedding_column(column, 3), of="numbers"),
        FEATURES,
        "GreaterEqual; SelectV2; input_layer/numbers_embedding: Embedding(4, 3)[embeddings]; "
        f"{MEAN}RealDiv",
    ),
    "embedding column of buckets": (
        columns(lambda f, column: f.embedding_column(column, 3), of="amounts"),
        FEATURES,
        "Bucketize; AddV2; input_layer/amounts_bucketized_embedding: "
        "Embedding(6, 3)[embeddings]; Sum; RealDiv",
    ),
    "indicator column": (
        columns(lambda f, column: f.indicator_column(column), of="numbers"),
        FEATURES,
        "NotEqual; SelectV2; OneHot; Sum",
    ),
    "vocabulary": (
        columns(
            lambda f, column: f.indicator_column(
                f.categorical_column_with_vocabulary_list("numbers", [2, 3, 5], dtype=v1.int64)
            ),
            of="numbers",
        ),
        FEATURES,
        "NotEqual; ExpandDims; Equal; Any; Cast; ArgMax; SelectV2; SelectV2; OneHot; Sum",
    ),
    "words": (
        lambda words: v1.feature_column.input_layer(
            {"words": words},
            [
                v1.feature_column.indicator_column(
                    v1.feature_column.categorical_column_with_vocabulary_list("words", ["a", "b"])
                )
            ],
        ),
        {"words": ("string", (None, 3))},
        "NotEqual; input_layer/words_indicator/SparseToDense/string_lookup: "
        "StringLookup(vocabulary=['a', 'b']); Sub; SelectV2; OneHot; Sum",
    ),
    "linear": (
        columns(lambda f, column: column, of="numbers", **LINEAR),
        FEATURES,
        f"GreaterEqual; SelectV2; linear_model/numbers: Embedding(4, 1)[embeddings]; {SUM}BiasAdd",
    ),
    "linear of buckets": (
        columns(lambda f, column: column, of="amounts", **LINEAR),
        FEATURES,
        "Bucketize; AddV2; linear_model/amounts_bucketized: "
        "Embedding(6, 1)[embeddings]; Sum; BiasAdd",
    ),
}


def described(program):
    found = {}
    for node in program.nodes():
        if node.kind == g.LAYER:
            layer = node.layer
            name = "/".join([*layer.scope, layer.name])
            text = f"{name}: {_call(layer.cls, layer.args, layer.options)}"
            text += f"[{', '.join(layer.bound)}]" if layer.bound else ""
            text += _arguments(layer.call)
            found[layer] = text
        elif node.kind == g.FUNCTION:
            found[node] = _call(node.attrs["function"], [], node.attrs["options"])
        elif node.kind not in g.SOURCES | {g.SIZE, g.SIZES}:
            found[node] = node.kind
    return "; ".join(found.values())


def _arguments(call):
    shown = [f"{k}={v.text}" for k, v in call.items() if isinstance(v, g.Code)]
    return f"({', '.join(shown)})" if shown else ""


def _call(name, args, options):
    texts = [*map(repr, args), *(f"{k}={v!r}" for k, v in options.items())]
    return f"{name.removeprefix('layers.')}({', '.join(texts)})"


@pytest.mark.filterwarnings("ignore:.*add_variable:UserWarning")  # by a linear model
@pytest.mark.parametrize("case", ROWS | BAGS)
def test_recognized(case):
    build, specs, expected = (ROWS | BAGS)[case]
    program, weights, feeds, results = running.program_of(build, specs)
    recognize(program, weights)
    if expected is None:
        assert "SparseSegment" in described(program)
        return
    assert described(program) == expected
    made = running.run(program, feeds, training="training=" in expected)
    for name, result in results.items():
        np.testing.assert_allclose(made[name], result, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", [case for case in BAGS if "bag" in case])
def test_bags_of_ref_variables(case):
    build, specs, expected = BAGS[case]

    def with_refs(x):
        with v1.variable_scope("", use_resource=False):
            return build(x)

    program, weights, feeds, results = running.program_of(with_refs, specs)
    assert not any(node.kind == "Unique" for node in program.nodes())  # which others have
    recognize(program, weights)
    assert ("SparseSegment" in described(program)) == (expected is None)
    made = running.run(program, feeds)
    np.testing.assert_allclose(made["out"], results["out"], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", RECURRENT)
def test_recurrent(case):
    build, specs, expected = RECURRENT[case]
    program, weights, feeds, results = running.program_of(build, specs)
    recognize(program, weights)
    if "Scan" in expected:
        assert not running.layers_of(program)
        assert expected.count("Scan") == described(program).count("Scan")
        return
    assert described(program) == expected
    made = running.run(program, feeds)
    for name, result in results.items():
        np.testing.assert_allclose(made[name], result, rtol=2e-5, atol=2e-5)


def test_dropouts_of_a_cell_stand_before_and_after_it():
    def build(x):
        cell = cells.DropoutWrapper(cells.GRUCell(2), input_keep_prob=0.75, output_keep_prob=0.5)
        return v1.nn.dynamic_rnn(cell, x, dtype=F)[0]

    program, weights, *_ = running.program_of(build, STEPS)
    recognize(program, weights)
    assert described(program) == (
        "rnn/dropout: Dropout(0.25)(training=training); rnn/gru_cell: GRU(2, reset_after=False, "
        f"return_sequences=True){OF_A_CELL}; rnn/dropout: Dropout(0.5)(training=training)"
    )


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: tf1.layers.dropout(x, 0.3, training=True), "Dropout(0.3)"),
        (lambda x: v1.nn.dropout(x, keep_prob=0.9), "Dropout(0.1)"),
        (lambda x: tf_keras.layers.Dropout(0.3)(x, training=True), "Dropout(0.3)"),
        (
            lambda x: v1.nn.dropout(x, rate=0.5, noise_shape=[v1.shape(x)[0], 1]),
            "Dropout(0.5, noise_shape=(None, 1))",
        ),
    ],
)
def test_dropout(build, expected):
    program, weights, feeds, _ = running.program_of(build, VECTOR)
    recognize(program, weights)
    assert described(program) == f"dropout: {expected}(training=training)"
    np.testing.assert_array_equal(running.run(program, feeds)["out"], feeds["x"])


def test_a_shape_that_tensorflow_did_not_know():
    """As of a batch whose sizes are known once several batches have been seen."""
    given = g.Node("Input", "x", attrs={"key": "x"}).output((None, 10, 5), "float32")
    shape = g.constant(np.array([-1, 5], np.int32), "shape")
    made = g.Node("Reshape", "rows", [given, shape]).output((None, None), "float32")
    simplify(g.Program({"x": given}, {"out": made}))
    assert made.shape == (None, 5)
