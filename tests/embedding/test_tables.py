import pathlib
import sys

import pytest
from support import probing

from tpu_estimator_compat import embedding


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


ROWS, DIMENSION = 4_000_000, 16


@pytest.mark.slow
def test_a_large_table_is_held_once(tmp_path):
    script = pathlib.Path(__file__).with_name("large_table_probe.py")
    found = probing.run(sys.executable, script, str(ROWS), cwd=tmp_path)
    table_and_slot = 2 * ROWS * DIMENSION * 4 / 2**20
    # 1.09 was seen, of 10 million rows.
    assert (found["peak"] - found["before"]) / table_and_slot < 1.3, found
