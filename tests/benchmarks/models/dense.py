"""Model: a large embedding table all of whose rows change in each step, with Adam's two slots."""

from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "dense", "adam"
BATCH = 64
ROWS, WIDTH, CLASSES = 100_000, 256, 2


def examples(count: int) -> tuple[Any, Any]:
    ids = np.random.RandomState(1).randint(0, ROWS, size=count)
    return {"ids": ids}, (ids % CLASSES).astype(np.int32)


def logits(get: Any, features: Any) -> tf.Tensor:
    table = 1.0 * get("table", (ROWS, WIDTH), 0.05)  # its gradient is dense
    return classified(get, table, features)


def classified(get: Any, table: tf.Tensor, features: Any) -> tf.Tensor:
    rows = tf.nn.embedding_lookup(table, features["ids"])
    return tf.matmul(rows, get("kernel", (WIDTH, CLASSES), 0.05))
