"""The length of the inner loop, in steps or seconds."""

import numpy as np
import pytest

from tpu_estimator_compat.config import (
    IterationsPerLoopCounter,
    TPUConfig,
    check_positive_integer,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, (1, "count")),
        ("250", (250, "count")),
        (np.int64(8), (8, "count")),
        ("30s", (30, "seconds")),
        ("2m", (120, "seconds")),
        ("3h", (10800, "seconds")),
    ],
)
def test_iterations_are_steps_or_seconds(given, expected):
    config = TPUConfig(iterations_per_loop=given)
    assert config.loop_length == IterationsPerLoopCounter(*expected)
    assert config.iterations_per_loop is given


@pytest.mark.parametrize("given", [0, -1, "0s", "05", "1d", "s", "", "5|", "5\n", 1.5, True, None])
def test_other_iterations_are_refused(given):
    with pytest.raises(ValueError, match="Invalid TPUConfig `iterations_per_loop` value"):
        TPUConfig(iterations_per_loop=given)


def test_positive_integers_pass_and_others_do_not():
    check_positive_integer(np.int32(1), "n")
    with pytest.raises(TypeError, match=r"n must be int, got <class 'float'>: 1\.0"):
        check_positive_integer(1.0, "n")
    with pytest.raises(ValueError, match="n must be positive, got 0"):
        check_positive_integer(0, "n")
