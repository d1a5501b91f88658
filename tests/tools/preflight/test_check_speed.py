"""What a preflight costs before the compiler starts, as parts of what the capture costs."""

from __future__ import annotations

import pytest
import tensorflow as tf

from . import models
from .asking import report


def deep(features, labels, mode, params):
    """More than 5000 operations."""
    x = tf.tile(features["x"], [1, 4])
    for i in range(160):
        weights = tf.compat.v1.get_variable(f"layer_{i}/weights", [32, 32])
        x = x + tf.nn.gelu(x @ weights)
    return models.spec(mode, tf.reduce_mean(x))


@pytest.mark.slow
def test_before_the_compiler(tmp_path):
    report(models.plain, tmp_path)  # the first lowering of a process registers kernels
    found = [report(deep, tmp_path) for _ in range(3)]
    assert found[0].ops > 5000

    def share(part):
        """Of the time that capturing takes; other work on the machine only adds to it."""
        return min(each.seconds[part] / each.seconds["capture"] for each in found)

    assert share("scan") < 0.2
    assert share("lower") < 3  # most of it is XLA's own time
