import numpy as np
import tensorflow.compat.v1 as tf

from support.proofs import evaluate, graph, proves, variables_of

LAYERS = "tf.contrib.layers"
DEEP = f"{LAYERS}.python.layers"


@proves("tf.contrib.layers")
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


@proves("tf.contrib.layers.python.layers.encoders")
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
