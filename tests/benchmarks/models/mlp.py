"""Model: a perceptron of two hidden layers, trained with Adam; the loop's own cost shows here."""

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "mlp", "adam"
BATCH = 64
WIDTHS = (64, 256, 256, 10)


def examples(count: int, widths: tuple[int, ...] = WIDTHS) -> tuple[Any, Any]:
    rng = np.random.RandomState(1)
    x = rng.normal(size=(count, widths[0])).astype(np.float32)
    return {"x": x}, x[:, : widths[-1]].argmax(axis=1).astype(np.int32)


def logits(get: Any, features: Any, widths: tuple[int, ...] = WIDTHS) -> tf.Tensor:
    x = features["x"]
    for i, (width, units) in enumerate(itertools.pairwise(widths)):
        x = tf.matmul(x, get(f"dense_{i}/kernel", (width, units), 0.05))
        x = tf.nn.bias_add(x, get(f"dense_{i}/bias", (units,), "zeros"))
        if units != widths[-1]:
            x = tf.nn.relu(x)
    return x
