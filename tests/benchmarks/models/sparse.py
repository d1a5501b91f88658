"""Model: a large embedding table of which a step changes the rows that it looks up."""

from typing import Any

import tensorflow as tf

from benchmarks.models import dense

NAME, OPTIMIZER = "sparse", "adagrad"
BATCH, RATE = dense.BATCH, 0.05
ROWS = 250_000

examples = dense.examples


def logits(get: Any, features: Any) -> tf.Tensor:
    return dense.classified(get, get("table", (ROWS, dense.WIDTH), 0.05), features)
