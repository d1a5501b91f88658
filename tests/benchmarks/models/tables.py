"""Model: a click model of many embedding tables, whose lookups and updates are most of a step.

With TPU semantics the tables are those of an `EmbeddingConfigSpec`: features are activations then.
"""

from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "tables", "adagrad"
BATCH = 512
IN_BATCHES = True  # to slice 26 features example by example takes longer than the step
KEYS = tuple(f"category_{i:02d}" for i in range(26))
ROWS, WIDTH, HIDDEN, CLASSES = 100_000, 16, 64, 2
RATE = 0.05


def examples(count: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(1)
    ids = {key: rng.randint(0, ROWS, size=count) for key in KEYS}
    return ids, (ids[KEYS[0]] % CLASSES).astype(np.int32)


def logits(get: Any, features: Any) -> tf.Tensor:
    x = tf.concat([_activation(get, key, features[key]) for key in KEYS], axis=1)
    x = tf.nn.relu(tf.matmul(x, get("dense_0/kernel", (len(KEYS) * WIDTH, HIDDEN), 0.05)))
    return tf.matmul(x, get("dense_1/kernel", (HIDDEN, CLASSES), 0.05))


def _activation(get: Any, key: str, feature: tf.Tensor) -> tf.Tensor:
    if feature.dtype.is_floating:
        return feature
    return tf.nn.embedding_lookup(get(key, (ROWS, WIDTH), 0.05), feature)


def embedding_config_spec() -> Any:
    """The tables as this package's TPUEstimator is told of them."""
    from tpu_estimator_compat import embedding

    initializer = tf.random_normal_initializer(stddev=0.05)
    table = embedding.TableConfig(ROWS, WIDTH, initializer, combiner=None)
    return embedding.EmbeddingConfigSpec(
        table_to_config_dict=dict.fromkeys(KEYS, table),
        feature_to_config_dict={key: embedding.FeatureConfig(key) for key in KEYS},
        optimization_parameters=embedding.AdagradParameters(RATE),
    )
