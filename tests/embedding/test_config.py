import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat import embedding

from .small_model import FEATURE, TABLE, column

SPECS = {
    "neither form": ({}, ValueError, "Exactly one of .* Got neither"),
    "half a form": ({"table_to_config_dict": TABLE}, ValueError, "Exactly one of"),
    "both forms": (
        {
            "feature_columns": [column()],
            "table_to_config_dict": TABLE,
            "feature_to_config_dict": FEATURE,
        },
        ValueError,
        "Exactly one of .* Got both",
    ),
    "unknown table": (
        {
            "table_to_config_dict": TABLE,
            "feature_to_config_dict": {"a": embedding.FeatureConfig("letters")},
        },
        ValueError,
        r"Feature a refers to table letters which is not in .* It has \['words'\]",
    ),
    "no feature config": (
        {"table_to_config_dict": TABLE, "feature_to_config_dict": {"a": "words"}},
        TypeError,
        "Config for feature a must be of type `FeatureConfig`",
    ),
    "no table config": (
        {"table_to_config_dict": {"words": 5}, "feature_to_config_dict": FEATURE},
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
        {
            "table_to_config_dict": TABLE,
            "feature_to_config_dict": FEATURE,
            "partition_strategy": "row",
        },
        ValueError,
        'Invalid partition_strategy row. Must be one of "mod" or "div"',
    ),
    "limit": (
        {"table_to_config_dict": TABLE, "feature_to_config_dict": FEATURE, "clipping_limit": -1.0},
        ValueError,
        "clipping_limit must be a positive number, got -1.0",
    ),
}


@pytest.mark.parametrize(("given", "error", "message"), SPECS.values(), ids=SPECS)
def test_senseless_specs(given, error, message):
    with pytest.raises(error, match=message):
        embedding.EmbeddingConfigSpec(**given)
