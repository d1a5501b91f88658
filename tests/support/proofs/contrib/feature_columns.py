import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, proves, variables_of
from tpu_estimator_compat.old_names.contrib import layers

LAYERS = "tf.contrib.layers"


def dense_of(columns, features):
    def build():
        tensors = {name: tf.constant(value) for name, value in features.items()}
        return layers.input_from_feature_columns(tensors, columns)

    return evaluate(build)


def ids(name="x"):
    return layers.sparse_column_with_integerized_feature(name, 3)


def words():
    return layers.sparse_column_with_keys("x", ["a", "b"])


def one_hot(column):
    return layers.one_hot_column(column)


ONES = {"initializer": tf.ones_initializer()}
COLUMNS = {
    # How the function makes a column, what is fed, and what the column gives.
    "real_valued_column": (lambda f: f("x", 2, normalizer=lambda x: x * 2), [1.0, 2.0], [2, 4]),
    "bucketized_column": (lambda f: f(layers.real_valued_column("x"), [0, 1]), [0.5], [0, 1, 0]),
    "sparse_column_with_keys": (lambda f: one_hot(f("x", ["a", "b"])), ["b"], [0, 1]),
    "sparse_column_with_integerized_feature": (lambda f: one_hot(f("x", 3)), [2], [0, 0, 1]),
    "one_hot_column": (lambda f: f(ids()), [1], [0, 1, 0]),
    "embedding_column": (lambda f: f(ids(), 2, **ONES), [1], [1, 1]),
}


def gives_what_is_said(function):
    make, fed, expected = COLUMNS[function.__name__]
    assert dense_of([make(function)], {"x": [fed]}).tolist() == [expected]


proves(*below(LAYERS, " ".join(COLUMNS)))(gives_what_is_said)


@proves(f"{LAYERS}.sparse_column_with_hash_bucket")
def hashes(sparse_column):
    assert dense_of([one_hot(sparse_column("x", 5))], {"x": [["word"]]}).sum() == 1


@proves(f"{LAYERS}.crossed_column")
def crosses(crossed_column):
    crossed = one_hot(crossed_column(["a", "b"], 7))
    assert dense_of([crossed], {"a": [["x"]], "b": [["y"]]}).sum() == 1


@proves(f"{LAYERS}.sparse_column_with_vocabulary_file")
def reads_vocabularies(sparse_column, tmp_path):
    (tmp_path / "words").write_text("a\nb\n")
    column = one_hot(sparse_column("x", str(tmp_path / "words"), 1, 2))
    assert dense_of([column], {"x": [["b"]]}).tolist() == [[0, 1, 0]]


@proves(f"{LAYERS}.weighted_sparse_column")
def weights(weighted):
    column = one_hot(weighted(words(), "w"))
    assert dense_of([column], {"x": [["b"]], "w": [[0.5]]}).tolist() == [[0, 0.5]]


@proves(f"{LAYERS}.shared_embedding_columns")
def shares(shared):
    def build():
        columns = shared([ids("a"), ids("b")], 2, **ONES)
        features = {"a": tf.constant([[1]]), "b": tf.constant([[2]])}
        return layers.input_from_feature_columns(features, columns)

    assert evaluate(build).tolist() == [[1, 1, 1, 1]]
    assert len(variables_of(build)) == 1


@proves(f"{LAYERS}.input_from_feature_columns")
def makes_inputs(function):
    assert function is layers.input_from_feature_columns
    assert dense_of([layers.real_valued_column("x")], {"x": [[3.0]]}).tolist() == [[3.0]]


@proves(f"{LAYERS}.create_feature_spec_for_parsing")
def makes_specs(function):
    assert function([layers.real_valued_column("x", 2)])["x"].shape == (2,)


@proves("tf.contrib.feature_column.sequence_input_layer")
def joins_sequences(layer):
    column = tf.feature_column.sequence_categorical_column_with_identity("words", 3)

    def build():
        ids = tf.constant([2, 0, 1], tf.int64)
        words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ids, [2, 2])
        return layer({"words": words}, [tf.feature_column.indicator_column(column)])

    values, lengths = evaluate(build)
    assert values.tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 0]]]
    assert lengths.tolist() == [2, 1]
