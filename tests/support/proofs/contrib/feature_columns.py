"""Proofs of the feature columns of `tf.contrib.layers`."""

import tensorflow.compat.v1 as tf

from support.proofs import below, evaluate, proves, variables_of

LAYERS = "tf.contrib.layers"
DEEP = f"{LAYERS}.python.layers"


def dense_of(layers, columns, features):
    def build():
        tensors = {name: tf.constant(value) for name, value in features.items()}
        return layers.input_from_feature_columns(tensors, columns)

    return evaluate(build).tolist()


def with_layers(name):
    """Rows of single columns get the function; the others come from the module."""
    from tpu_estimator_compat.old_names.contrib import layers

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
