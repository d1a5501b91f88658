import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from .small_model import BATCH, ROWS, dict_spec, estimator_of, of, sparse


@pytest.mark.parametrize("wrong", [ROWS, -1])
@pytest.mark.parametrize("replicas", [1, 2])
def test_ids_that_the_table_does_not_have(tmp_path, strategy, wrong, replicas):
    estimator = estimator_of(tmp_path, dict_spec(), strategy=strategy(replicas))
    message = (
        rf"(?s)Feature_a_has_ids_that_table_words_does_not_have.* = {wrong} is not in \[0, 5\)"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        estimator.train(of(lambda: {"a": sparse([1, 2, wrong])}), steps=1)


FEATURES = {
    "missing": (
        lambda: {"b": sparse([1])},
        {},
        ValueError,
        r"no 'a', whose ids embedding_config_spec looks up. input_fn gives \['b'\]",
    ),
    "no dict": (lambda: sparse([1]), {}, TypeError, r"must be a dict that has the ids of \['a'\]"),
    "floats": (
        lambda: {"a": sparse([1], np.float32)},
        {},
        ValueError,
        "'a' must be integers, got float32",
    ),
    "rank 3": (
        lambda: {"a": tf.zeros([BATCH, 2, 2], tf.int64)},
        {"table": {"combiner": None}},
        ValueError,
        r"ids of feature 'a'.* have shape \(4, 2, 2\). Expected \[batch\] or",
    ),
    "no combiner": (
        lambda: {"a": tf.zeros([BATCH, 2], tf.int64)},
        {"table": {"combiner": None}},
        ValueError,
        r"'a' has dense ids of shape \(4, 2\), but table 'words' has no combiner",
    ),
    "no sequence": (
        lambda: {"a": tf.zeros([BATCH], tf.int64)},
        {"feature": {"max_sequence_length": 2}},
        ValueError,
        r"Expected \[batch, length\]",
    ),
    "short sequence": (
        lambda: {"a": tf.zeros([BATCH, 2], tf.int64)},
        {"feature": {"max_sequence_length": 3}, "table": {"combiner": None}},
        ValueError,
        "as many places as max_sequence_length says",
    ),
    "no weights": (
        lambda: {"a": sparse([1])},
        {"feature": {"weight_key": "w"}},
        ValueError,
        r"Cannot find weights w of feature 'a'",
    ),
    "dense weights": (
        lambda: {"a": sparse([1]), "w": tf.ones([BATCH])},
        {"feature": {"weight_key": "w"}},
        ValueError,
        "weights w of feature 'a' are dense",
    ),
    "weights of dense ids": (
        lambda: {"a": tf.ones([BATCH, 2], tf.int64), "w": sparse([1.0], np.float32)},
        {"feature": {"weight_key": "w"}},
        ValueError,
        "whose ids are dense",
    ),
    "other weights": (
        lambda: {"a": sparse([1, 2]), "w": sparse([1.0], np.float32)},
        {"feature": {"weight_key": "w"}},
        tf.errors.InvalidArgumentError,
        "ids and the weights of feature a, which is looked up in table words, are of different",
    ),
    "no optimizer": (
        lambda: {"a": sparse([1])},
        {"optimizer": None},
        ValueError,
        r"`optimization_parameters` is missing: the tables \['words'\]",
    ),
}


@pytest.mark.parametrize(("features", "given", "error", "message"), FEATURES.values(), ids=FEATURES)
def test_features_that_cannot_be_looked_up(tmp_path, strategy, features, given, error, message):
    estimator = estimator_of(tmp_path, dict_spec(**given), strategy=strategy(1))
    with pytest.raises(error, match=message):
        estimator.train(of(features), steps=1)
