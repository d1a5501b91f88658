import pathlib
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import columns_probe, probing, table_trainings

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

from .small_model import (
    BATCH,
    FEATURE,
    ROWS,
    SGD,
    TABLE,
    column,
    dict_spec,
    estimator_of,
    model_fn,
    of,
    sparse,
)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vocabulary_size": 0, "dimension": 2}, "vocabulary_size must >= 1. Received: 0"),
        ({"vocabulary_size": 2, "dimension": 0.5}, "dimension must be a positive int"),
        ({"vocabulary_size": 2, "dimension": 2, "combiner": "max"}, "Received: max"),
        ({"vocabulary_size": 2, "dimension": 2, "initializer": 3}, "must be callable"),
        (
            {"vocabulary_size": 2, "dimension": 2, "learning_rate": 1, "learning_rate_fn": abs},
            "At most one of",
        ),
        (
            {"vocabulary_size": 2, "dimension": 2, "optimization_parameters": 0.1},
            "optimization_parameters must be one such as",
        ),
    ],
)
def test_senseless_tables(given, message):
    with pytest.raises(ValueError, match=message):
        embedding.TableConfig(**given)


def test_a_negative_sequence_length():
    with pytest.raises(ValueError, match="max_sequence_length must be zero or a positive int"):
        embedding.FeatureConfig("words", -1)


LARGE, DIMENSION = 4_000_000, 16


@pytest.mark.slow
def test_a_large_table_is_held_once(tmp_path):
    script = pathlib.Path(__file__).with_name("large_table_probe.py")
    found = probing.run(sys.executable, script, str(LARGE), cwd=tmp_path)
    table_and_slot = 2 * LARGE * DIMENSION * 4 / 2**20
    # 1.09 was seen, of 10 million rows.
    assert (found["peak"] - found["before"]) / table_and_slot < 1.3, found


def test_columns_that_model_fn_does_not_use(tmp_path, strategy):
    given = embedding.EmbeddingConfigSpec([column()], SGD)
    estimator = estimator_of(tmp_path, given, strategy=strategy(1))
    with pytest.raises(RuntimeError, match="did not use the feature column of the table tbl_a"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)


def test_gradients_that_are_computed_twice(tmp_path, strategy):
    def twice(features, labels, mode, params):
        tf.gradients(tf.reduce_sum(features["a"]), tf.trainable_variables())
        return model_fn(features, labels, mode, params)

    estimator = estimator_of(tmp_path, dict_spec(), twice, strategy(1))
    with pytest.raises(RuntimeError, match=r"Duplicate gradients .* 'a'"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)


def test_activations_that_nobody_uses_are_told_of(tmp_path, strategy, caplog):
    def unused(features, labels, mode, params):
        features = {"a": tf.stop_gradient(features["a"])}
        return model_fn(features, labels, mode, params)

    estimator = estimator_of(tmp_path, dict_spec(), unused, strategy(1))
    with caplog.at_level("WARNING"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)
    assert "features ['a'] have undefined gradients" in caplog.text


def test_ids_stay_on_the_host_and_activations_are_the_input(tmp_path):
    estimator = table_trainings.with_columns(
        tmp_path, embedding.AdagradParameters(0.1), "adagrad", tpu.RunConfig()
    )
    result = estimator.preflight(columns_probe.input_fn, topology="v5e:2x2", depth="lower")
    [report] = result.reports
    assert not report.findings, str(result)
    # age, a label and four activations of three, for two examples of a replica
    assert report.input_bytes == 4 * 2 * (1 + 1 + 4 * 3)
    assert "Variables of the host take" in str(result)
    assert "input_layer/user_embedding/embedding_weights (9 rows)" in str(result)
    assert report.parameters == 13


def test_what_an_estimator_refuses(tmp_path):
    with pytest.raises(ValueError, match="Only PER_HOST_V1 and PER_HOST_V2 is supported"):
        estimator_of(
            tmp_path, dict_spec(), per_host_input_for_training=tpu.InputPipelineConfig.BROADCAST
        )
    plain = tf.feature_column.numeric_column("x")
    with pytest.raises(TypeError, match="Unsupported feature column"):
        estimator_of(tmp_path, embedding.EmbeddingConfigSpec([plain], SGD))
    with pytest.raises(ValueError, match="a is used with multiple embeddings"):
        estimator_of(tmp_path, embedding.EmbeddingConfigSpec([column(), column()], SGD))
    unused = {**TABLE, "letters": embedding.TableConfig(3, 2)}
    with pytest.raises(ValueError, match=r"a table that is not used .* letters"):
        estimator_of(
            tmp_path,
            embedding.EmbeddingConfigSpec(
                table_to_config_dict=unused, feature_to_config_dict=FEATURE
            ),
        )
    for use_tpu, eval_on_tpu in [(False, True), (True, False)]:
        with pytest.raises(ValueError, match="Mod sharding of embedding tables not supported"):
            tpu.TPUEstimator(
                model_fn,
                config=tpu.RunConfig(),
                use_tpu=use_tpu,
                eval_on_tpu=eval_on_tpu,
                train_batch_size=BATCH,
                embedding_config_spec=dict_spec(partition_strategy="mod"),
            )


DICTS = {"table_to_config_dict": TABLE, "feature_to_config_dict": FEATURE}
SPECS = {
    "neither form": ({}, ValueError, "Exactly one of .* Got neither"),
    "half a form": ({"table_to_config_dict": TABLE}, ValueError, "Exactly one of"),
    "both forms": (
        {"feature_columns": [column()], **DICTS},
        ValueError,
        "Exactly one of .* Got both",
    ),
    "unknown table": (
        {**DICTS, "feature_to_config_dict": {"a": embedding.FeatureConfig("letters")}},
        ValueError,
        r"Feature a refers to table letters which is not in .* It has \['words'\]",
    ),
    "no feature config": (
        {**DICTS, "feature_to_config_dict": {"a": "words"}},
        TypeError,
        "Config for feature a must be of type `FeatureConfig`",
    ),
    "no table config": (
        {**DICTS, "table_to_config_dict": {"words": 5}},
        TypeError,
        "Config for table words must be of type `TableConfig`",
    ),
    "optimizer of a model": (
        {"feature_columns": [column()], "optimization_parameters": tf.train.AdagradOptimizer(0.1)},
        ValueError,
        "optimization_parameters must be an instance of type .*AdagradParameters",
    ),
    "no optimizer": ({"feature_columns": [column()]}, ValueError, "optimization_parameters must"),
    "no column": ({"feature_columns": ["a"]}, TypeError, "All feature columns must be"),
    "partition": (
        {**DICTS, "partition_strategy": "row"},
        ValueError,
        'Invalid partition_strategy row. Must be one of "mod" or "div"',
    ),
    "limit": (
        {**DICTS, "clipping_limit": -1.0},
        ValueError,
        "clipping_limit must be a positive number, got -1.0",
    ),
}


@pytest.mark.parametrize(("given", "error", "message"), SPECS.values(), ids=SPECS)
def test_senseless_specs(given, error, message):
    with pytest.raises(error, match=message):
        embedding.EmbeddingConfigSpec(**given)


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
