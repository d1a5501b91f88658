"""`tf.contrib.layers`, slim, framework, rnn, metrics and losses."""

import importlib

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras
from tf_keras.src.layers.rnn import legacy_cells

from ..proofs import below, evaluate, graph, proves, variables_of

LAYERS = "tf.contrib.layers"
DEEP = f"{LAYERS}.python.layers"


@proves(LAYERS, *below(DEEP, ". layers"))
def has_layers(layers):
    def build():
        x = tf.ones([2, 8, 8, 3])
        x = layers.conv2d(x, 4, 3, normalizer_fn=layers.batch_norm)
        x = layers.layer_norm(layers.max_pool2d(x, 2))
        x = layers.dropout(layers.flatten(x), is_training=False)
        return layers.fully_connected(x, 5, weights_regularizer=layers.l2_regularizer(0.1))

    assert evaluate(build).shape == (2, 5)
    assert variables_of(build) == [
        "Conv/weights",
        "Conv/BatchNorm/beta",
        "Conv/BatchNorm/moving_mean",
        "Conv/BatchNorm/moving_variance",
        "LayerNorm/beta",
        "LayerNorm/gamma",
        "fully_connected/weights",
        "fully_connected/biases",
    ]
    with graph():
        build()
        assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
        assert len(tf.losses.get_regularization_losses()) == 1


@proves(f"{DEEP}.initializers")
def initializes(module):
    values = evaluate(lambda: module.xavier_initializer()([100, 50]))
    assert np.abs(values).max() <= np.sqrt(6 / 150)
    assert evaluate(lambda: module.variance_scaling_initializer()([5, 5])).shape == (5, 5)


@proves(f"{DEEP}.regularizers")
def regularizes(module):
    def build():
        x = tf.constant([3.0, -4.0])
        return module.l2_regularizer(0.1)(x), module.l1_regularizer(0.1)(x)

    np.testing.assert_allclose(evaluate(build), [1.25, 0.7], rtol=1e-6)


@proves(f"{DEEP}.utils")
def collects(module):
    with graph():
        module.collect_named_outputs("outputs", "alias", tf.constant(1))
        assert len(tf.get_collection("outputs")) == 1


@proves(f"{DEEP}.normalization")
def normalizes(module):
    x = np.random.RandomState(0).rand(2, 4, 4, 6).astype(np.float32)
    result = evaluate(lambda: module.instance_norm(tf.constant(x)))
    np.testing.assert_allclose(result.mean((1, 2)), 0, atol=1e-5)


@proves(f"{DEEP}.optimizers")
def optimizes(module):
    def build():
        tf.train.create_global_step()
        loss = tf.get_variable("v", initializer=2.0) ** 2
        return module.optimize_loss(loss, tf.train.get_global_step(), 0.1, "SGD")

    assert evaluate(build) == 4.0


@proves(f"{DEEP}.rev_block_lib")
def reverses(module):
    def build():
        double = [lambda x: 2.0 * x]
        return module.rev_block(tf.ones([1, 1]), tf.ones([1, 1]), double, double, num_layers=1)

    assert [float(x.item()) for x in evaluate(build)] == [3.0, 7.0]


@proves(f"{DEEP}.summaries")
def summarizes(module):
    with graph():
        module.summarize_tensor(tf.constant(1.0, name="one"))
        assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


@proves(*below(DEEP, "embedding_ops encoders"))
def embeds(module):
    def build(unique):
        ids = tf.constant([[1, 2, 1]])
        return module.embed_sequence(ids, 4, 2, unique=unique, initializer=tf.ones_initializer())

    for unique in (False, True):
        assert evaluate(lambda: build(unique)).tolist() == [[[1, 1]] * 3]  # noqa: B023
    assert variables_of(lambda: build(False)) == ["EmbedSequence/embeddings"]
    weights = np.eye(3, dtype=np.float32)

    def lookup():
        sparse = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([1, 2]), [2, 2])
        return module.safe_embedding_lookup_sparse(weights, sparse)

    assert evaluate(lookup).tolist() == [[0, 0.5, 0.5], [0, 0, 0]]


@proves("tf.contrib.slim.embed_sequence")
def embeds_sequences(embed_sequence):
    def build():
        return embed_sequence(tf.constant([[1]]), 4, 2, initializer=tf.ones_initializer())

    assert evaluate(build).tolist() == [[[1, 1]]]


@proves("tf.contrib.slim.embedding_lookup_unique")
def looks_up_once(lookup):
    rows = np.eye(3, dtype=np.float32)
    assert evaluate(lambda: lookup(rows, tf.constant([[2, 2]]))).tolist() == [[[0, 0, 1]] * 2]


@proves("tf.contrib.slim.safe_embedding_lookup_sparse")
def looks_up_safely(lookup):
    def build():
        ids = tf.SparseTensor([[0, 0]], tf.constant([1]), [2, 2])
        return lookup(np.eye(3, dtype=np.float32), ids)

    assert evaluate(build).tolist() == [[0, 1, 0], [0, 0, 0]]


def dense_of(layers, columns, features):
    def build():
        tensors = {name: tf.constant(value) for name, value in features.items()}
        return layers.input_from_feature_columns(tensors, columns)

    return evaluate(build).tolist()


def with_layers(name):
    """Rows of single columns get the function; the others come from the module."""
    from tpu_estimator_compat.contrib import layers

    return getattr(layers, name)


input_from = with_layers("input_from_feature_columns")


class _Layers:
    input_from_feature_columns = staticmethod(input_from)


@proves(*below(LAYERS, "real_valued_column"))
def has_numbers(real_valued_column):
    column = real_valued_column("x", 2, normalizer=lambda x: x * 2)
    assert dense_of(_Layers, [column], {"x": [[1.0, 2.0]]}) == [[2.0, 4.0]]


@proves(*below(LAYERS, "bucketized_column"))
def has_buckets(bucketized_column):
    column = bucketized_column(with_layers("real_valued_column")("x"), [0.0, 1.0])
    assert dense_of(_Layers, [column], {"x": [[0.5]]}) == [[0, 1, 0]]


@proves(*below(LAYERS, "sparse_column_with_keys"))
def has_keys(sparse_column):
    column = with_layers("one_hot_column")(sparse_column("x", ["a", "b"]))
    assert dense_of(_Layers, [column], {"x": [["b"]]}) == [[0, 1]]


@proves(*below(LAYERS, "sparse_column_with_integerized_feature"))
def has_integers(sparse_column):
    column = with_layers("one_hot_column")(sparse_column("x", 3))
    assert dense_of(_Layers, [column], {"x": [[2]]}) == [[0, 0, 1]]


@proves(*below(LAYERS, "sparse_column_with_hash_bucket"))
def has_hashes(sparse_column):
    column = with_layers("one_hot_column")(sparse_column("x", 5))
    assert sum(dense_of(_Layers, [column], {"x": [["word"]]})[0]) == 1


@proves(*below(LAYERS, "sparse_column_with_vocabulary_file"))
def has_vocabularies(sparse_column, tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    column = with_layers("one_hot_column")(sparse_column("x", str(tmp_path / "words"), 1, 2))
    assert dense_of(_Layers, [column], {"x": [["b"]]}) == [[0, 1, 0]]


@proves(*below(LAYERS, "weighted_sparse_column"))
def has_weights(weighted):
    words = with_layers("sparse_column_with_keys")("x", ["a", "b"])
    column = with_layers("one_hot_column")(weighted(words, "w"))
    assert dense_of(_Layers, [column], {"x": [["b"]], "w": [[0.5]]}) == [[0, 0.5]]


@proves(*below(LAYERS, "one_hot_column"))
def has_one_hots(one_hot_column):
    column = one_hot_column(with_layers("sparse_column_with_integerized_feature")("x", 3))
    assert dense_of(_Layers, [column], {"x": [[1]]}) == [[0, 1, 0]]


@proves(*below(LAYERS, "crossed_column"))
def has_crosses(crossed_column):
    column = with_layers("one_hot_column")(crossed_column(["a", "b"], 7))
    assert sum(dense_of(_Layers, [column], {"a": [["x"]], "b": [["y"]]})[0]) == 1


@proves(*below(LAYERS, "embedding_column"))
def has_embeddings(embedding_column):
    ids = with_layers("sparse_column_with_integerized_feature")("x", 3)
    column = embedding_column(ids, 2, initializer=tf.ones_initializer())
    assert dense_of(_Layers, [column], {"x": [[1]]}) == [[1, 1]]


@proves(*below(LAYERS, "shared_embedding_columns"))
def has_shared_embeddings(shared):
    def build():
        make = with_layers("sparse_column_with_integerized_feature")
        columns = shared([make("a", 3), make("b", 3)], 2, initializer=tf.ones_initializer())
        return input_from({"a": tf.constant([[1]]), "b": tf.constant([[2]])}, columns)

    assert evaluate(build).tolist() == [[1, 1, 1, 1]]
    assert len(variables_of(build)) == 1


@proves(*below(LAYERS, "input_from_feature_columns"))
def makes_inputs(input_from_feature_columns):
    def build():
        column = with_layers("real_valued_column")("x")
        return input_from_feature_columns({"x": tf.constant([[3.0]])}, [column])

    assert evaluate(build).tolist() == [[3.0]]


@proves(*below(LAYERS, "create_feature_spec_for_parsing"))
def makes_specs(create_feature_spec_for_parsing):
    spec = create_feature_spec_for_parsing([with_layers("real_valued_column")("x", 2)])
    assert spec["x"].shape == (2,)


@proves(f"{DEEP}.feature_column")
def has_columns(module):
    has_numbers(module.real_valued_column)


SLIM = "tf.contrib.slim"


@proves(SLIM, f"{SLIM}.python.slim")
def has_slim(slim):
    def build():
        with (
            slim.arg_scope([slim.conv2d], activation_fn=None, normalizer_fn=slim.batch_norm),
            slim.arg_scope([slim.batch_norm], scale=True, is_training=True),
        ):
            return slim.repeat(tf.ones([1, 8, 8, 2]), 2, slim.conv2d, 4, [3, 3])

    assert evaluate(build).shape == (1, 8, 8, 4)
    names = variables_of(build)
    assert "Repeat/convolution2d_1/weights" in names
    assert "Repeat/convolution2d_2/BatchNorm/gamma" in names


@proves(*below(SLIM, "nets python.slim.nets"))
def has_nets(nets):
    from tpu_estimator_compat.contrib import slim

    with graph():
        with slim.arg_scope(nets.resnet_v1.resnet_arg_scope()):
            logits, _ = nets.resnet_v1.resnet_v1_50(tf.ones([1, 32, 32, 3]), 10)
        assert logits.shape == (1, 1, 1, 10)
        assert len(tf.global_variables()) > 200
        assert tf.global_variables()[0].op.name == "resnet_v1_50/conv1/weights"


@proves(*below(SLIM, "learning python.slim.learning"))
def learns(learning):
    with graph():
        tf.train.create_global_step()
        loss = tf.get_variable("v", initializer=2.0) ** 2
        train_op = learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
        final = learning.train(train_op, None, number_of_steps=3, log_every_n_steps=0)
    # Each step multiplies the variable by 0.8; the loss is that before the third.
    np.testing.assert_allclose(final, (2 * 0.8**2) ** 2, rtol=1e-5)


@proves(f"{SLIM}.python.slim.evaluation")
def evaluates(evaluation, tmp_path):
    with graph(), tf.Session() as session:
        tf.train.create_global_step()
        tf.get_variable("v", initializer=2.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with graph():
        tf.train.create_global_step()
        value = tf.get_variable("v", []) * 3
        result = evaluation.evaluate_once("", path, str(tmp_path), final_op=value)
    assert result == 6.0


@proves(f"{SLIM}.python.slim.model_analyzer")
def analyzes(model_analyzer):
    with graph():
        tf.get_variable("v", [2, 3])
        assert model_analyzer.analyze_vars(tf.global_variables()) == (6, 24)


@proves(f"{SLIM}.python.slim.queues")
def runs_queues(queues):
    with graph(), tf.Session() as session:
        with queues.QueueRunners(session):
            assert session.run(tf.constant(1)) == 1


@proves(f"{SLIM}.python.slim.summaries")
def adds_summaries(summaries):
    with graph():
        summaries.add_scalar_summary(tf.constant(1.0), "one")
        assert len(tf.get_collection(tf.GraphKeys.SUMMARIES)) == 1


@proves(f"{SLIM}.python.slim.data")
def decodes(data, tmp_path):
    decoder = data.tfexample_decoder.TFExampleDecoder(
        {"x": tf.FixedLenFeature([], tf.int64)}, {"x": data.tfexample_decoder.Tensor("x")}
    )
    feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    assert evaluate(lambda: decoder.decode(example.SerializeToString(), ["x"])) == [7]


FRAMEWORK = "tf.contrib.framework"


@proves(*below(FRAMEWORK, ". python.framework python.ops python.framework.checkpoint_utils"))
@proves(*below(FRAMEWORK, "python.ops.checkpoint_ops"))
def restores(framework, tmp_path):
    with graph(), tf.Session() as session:
        framework.model_variable("v", initializer=tf.constant(2.0))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    assert framework.list_variables(path) == [("v", [])]
    assert framework.load_variable(path, "v") == 2.0
    with graph(), tf.Session() as session:
        variable = framework.model_variable("v", initializer=tf.constant(0.0))
        framework.assign_from_checkpoint_fn(path, framework.get_variables_to_restore())(session)
        assert session.run(variable) == 2.0
        assert [v.op.name for v in framework.get_variables_by_name("v")] == ["v"]
        with tf.name_scope("outer"):
            assert framework.get_name_scope() == "outer"


@proves(*below(FRAMEWORK, "python.framework.tensor_util"))
def checks(module):
    import pytest

    def build(expected):
        return module.with_shape(expected, tf.placeholder_with_default([1.0, 2.0], [None]))

    assert evaluate(lambda: build([2])).tolist() == [1, 2]
    with graph():
        assert build([2]).shape == [2]
        with pytest.raises(ValueError, match="Invalid shape"):
            module.with_shape([3], tf.constant([1.0]))
        with pytest.raises(ValueError, match="Expected integer type"):
            module.assert_scalar_int(tf.constant(1.0))
        assert module.get_graph_from_inputs([tf.constant(1)]) is tf.get_default_graph()
    with pytest.raises(tf.errors.InvalidArgumentError):
        evaluate(lambda: build([3]))
    assert evaluate(lambda: module.reduce_sum_n([tf.ones([2]), tf.ones([3, 2])])) == 8
    assert evaluate(lambda: module.with_same_shape(tf.ones([1]), tf.zeros([1]))) == [0]
    assert evaluate(lambda: module.assert_scalar_int(tf.constant(3))) == 3


@proves(*below(FRAMEWORK, "python.ops.script_ops"))
def calls_python(module):
    def build():
        return module.py_func(
            lambda a, b: {"sum": a + b},
            [tf.constant(1.0)],
            {"b": tf.constant(2.0)},
            {"sum": tf.float32},
            {"sum": []},
        )

    assert evaluate(build) == {"sum": 3.0}


@proves(*below(FRAMEWORK, "python.ops.arg_scope"))
def scopes(arg_scope):
    module = importlib.import_module(
        "tpu_estimator_compat.v1.contrib.framework.python.ops.arg_scope"
    )
    assert module.arg_scope is arg_scope

    @module.add_arg_scope
    def function(x, y=1):
        return x + y

    with arg_scope([function], y=5):
        assert function(1) == 6
    assert function(1) == 2


@proves(*below(FRAMEWORK, "python.ops.variables"))
def has_variables(module):
    with graph():
        module.model_variable("a", [1])
        module.local_variable(tf.zeros([1]), name="b")
        assert [v.op.name for v in module.get_model_variables()] == ["a"]
        assert [v.op.name for v in module.get_local_variables()] == ["b"]


@proves(
    *below("tf.contrib.rnn", ". python.ops.core_rnn_cell python.ops.rnn_cell python.ops.core_rnn")
)
@proves("tf.contrib.rnn.python.ops.rnn")
def has_networks(rnn):
    def build():
        def cells():
            return [rnn.BasicLSTMCell(2), rnn.LayerNormBasicLSTMCell(3)]

        outputs, states, _ = rnn.stack_bidirectional_dynamic_rnn(
            cells(), cells(), tf.ones([1, 4, 5]), dtype=tf.float32
        )
        assert isinstance(states[1], rnn.LSTMStateTuple)
        unrolled, _ = rnn.static_rnn(rnn.GRUCell(2), [tf.ones([1, 3])] * 2, dtype=tf.float32)
        stacked, _, _ = rnn.stack_bidirectional_rnn(
            [rnn.LSTMCell(2)], [rnn.LSTMCell(2)], [tf.ones([1, 3])] * 2, dtype=tf.float32
        )
        return outputs, unrolled[-1], stacked[0], rnn.transpose_batch_time(tf.ones([2, 3, 4]))

    shapes = [array.shape for array in evaluate(build)]
    assert shapes == [(1, 4, 6), (1, 2), (1, 4), (3, 2, 4)]
    prefix = "stack_bidirectional_rnn/cell_1/bidirectional_rnn/fw/layer_norm_basic_lstm_cell"
    names = variables_of(build)
    assert f"{prefix}/kernel" in names
    assert f"{prefix}/input/gamma" in names


@proves(*below("tf.contrib.metrics", ". python.ops.metric_ops"))
def measures(metrics):
    def build():
        return metrics.streaming_accuracy(tf.constant([1, 2]), tf.constant([1, 3]))[1]

    assert evaluate(build) == 0.5
    assert evaluate(lambda: metrics.confusion_matrix([0, 1], [0, 0])).tolist() == [[1, 0], [1, 0]]
    x = [1.0, 2.0, 4.0]
    correlation = evaluate(
        lambda: metrics.streaming_pearson_correlation(tf.constant(x), tf.constant(x))[1]
    )
    np.testing.assert_allclose(correlation, 1.0, rtol=1e-5)


@proves(*below("tf.contrib.losses", ". python.losses python.losses.loss_ops"))
def loses(losses):
    # Predictions come first, as they did not in tf.losses.
    loss = evaluate(lambda: losses.mean_squared_error(tf.constant([3.0]), tf.constant([1.0])))
    assert loss == 4.0
    one_hot = tf.one_hot
    loss = evaluate(lambda: losses.softmax_cross_entropy(tf.zeros([1, 2]), one_hot([0], 2)))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)


@proves(
    *below("tf.contrib.losses", "metric_learning python.metric_learning"),
    "tf.contrib.losses.python.metric_learning.metric_loss_ops",
)
def learns_metrics(module):
    def build():
        embeddings = tf.constant([[0.0, 0.0], [3.0, 4.0]])
        return module.contrastive_loss(tf.constant([1, 1]), embeddings, embeddings)

    assert evaluate(build) < 1e-5


@proves("tf.python.layers.base.InputSpec")
def specifies_input(spec):
    class OfRank2(tf_keras.layers.Layer):
        input_spec = spec(ndim=2)

    with graph():
        OfRank2()(tf.ones([2, 2]))
        with pytest.raises(ValueError, match="expected ndim=2"):
            OfRank2()(tf.ones([2]))


IMPLEMENTATIONS = ("tf.python.ops.rnn_cell", "tf.python.ops.rnn_cell_impl")
WRAPPERS = "DeviceWrapper DropoutWrapper ResidualWrapper"


@proves(*(name for module in IMPLEMENTATIONS for name in below(module, WRAPPERS)))
def wraps_a_cell(wrapper):
    def build():
        cell = legacy_cells.GRUCell(3)
        wrapped = wrapper(cell, *(["/cpu:0"] if wrapper.__name__ == "DeviceWrapper" else []))
        return wrapped(tf.ones([2, 3]), tf.zeros([2, 3]))[0]

    assert evaluate(build).shape == (2, 3)


@proves(*(f"{module}.assert_like_rnncell" for module in IMPLEMENTATIONS))
def knows_a_cell(check):
    check("cell", legacy_cells.GRUCell(3))
    with pytest.raises(TypeError, match="not an RNNCell"):
        check("cell", 3)


CELLS = "tf.contrib.rnn"


@proves(*below(CELLS, "LSTMBlockCell GRUBlockCell GRUBlockCellV2"))
def is_a_cell(cell):
    def build():
        return tf.nn.dynamic_rnn(cell(3), tf.ones([2, 4, 5]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 4, 3)


@proves(f"{CELLS}.LSTMBlockFusedCell", *below(f"{CELLS}.python.ops", "fused_rnn_cell lstm_ops"))
def runs_a_sequence(module):
    fused = getattr(module, "LSTMBlockFusedCell", module)
    assert evaluate(lambda: fused(3)(tf.ones([4, 2, 5]), dtype=tf.float32)[0]).shape == (4, 2, 3)


@proves(*below(CELLS, "FusedRNNCellAdaptor TimeReversedFusedRNN"))
def adapts_a_cell(adaptor):
    def turned(inputs, **given):
        return inputs, given

    def build():
        of_cell = adaptor.__name__ == "FusedRNNCellAdaptor"
        whole = adaptor(legacy_cells.GRUCell(4) if of_cell else turned)
        return whole(tf.zeros([2, 3, 4]), dtype=tf.float32)[0]

    assert evaluate(build).shape == (2, 3, 4)


@proves(f"{CELLS}.FusedRNNCell")
def is_for_cells_of_ones_own(cell):
    with pytest.raises(NotImplementedError):
        cell()([tf.ones([1, 1])])
