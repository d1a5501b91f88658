"""Model: a perceptron so small that little but the cost of the loop itself is left to time."""

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "small", "adam"
BATCH = 16
WIDTHS = (16, 32, 4)


def examples(count: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(1)
    x = rng.normal(size=(count, WIDTHS[0])).astype(np.float32)
    return {"x": x}, x[:, : WIDTHS[-1]].argmax(axis=1).astype(np.int32)


def logits(get: Any, features: Any) -> tf.Tensor:
    x = features["x"]
    for i, (width, units) in enumerate(itertools.pairwise(WIDTHS)):
        x = tf.matmul(x, get(f"dense_{i}/kernel", (width, units), 0.05))
        x = tf.nn.bias_add(x, get(f"dense_{i}/bias", (units,), "zeros"))
        if units != WIDTHS[-1]:
            x = tf.nn.relu(x)
    return x
