"""Model: two convolutions with pooling and two dense layers on 28x28 images, with momentum."""

from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "convnet", "momentum"
BATCH = 64
CLASSES, SIDE, FILTERS, UNITS = 10, 28, (16, 32), 64


def examples(count: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(1)
    images = rng.normal(size=(count, SIDE, SIDE, 1)).astype(np.float32)
    return {"image": images}, rng.randint(CLASSES, size=count).astype(np.int32)


def logits(get: Any, features: Any) -> tf.Tensor:
    x, channels = features["image"], 1
    for i, filters in enumerate(FILTERS):
        kernel = get(f"conv_{i}/kernel", (5, 5, channels, filters), 0.05)
        x = tf.nn.conv2d(x, kernel, strides=1, padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, get(f"conv_{i}/bias", (filters,), "zeros")))
        x, channels = tf.nn.max_pool2d(x, 2, 2, "VALID"), filters
    width = (SIDE // 4) ** 2 * channels
    x = tf.reshape(x, [-1, width])
    x = tf.nn.relu(
        tf.matmul(x, get("dense/kernel", (width, UNITS), 0.05))
        + get("dense/bias", (UNITS,), "zeros")
    )
    return tf.matmul(x, get("logits/kernel", (UNITS, CLASSES), 0.05)) + get(
        "logits/bias", (CLASSES,), "zeros"
    )
