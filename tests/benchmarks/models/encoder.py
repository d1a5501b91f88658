"""Model: a BERT-like encoder of two layers, with clipped gradients and an optimizer of its own."""

import functools
import types
from typing import Any

import numpy as np
import tensorflow as tf

NAME, OPTIMIZER = "encoder", "decay_adam"
BATCH = 16
VOCABULARY, LENGTH, HIDDEN, HEADS, LAYERS, CLASSES = 1000, 64, 64, 4, 2, 3


def examples(count: int) -> tuple[Any, Any]:
    rng = np.random.RandomState(1)
    ids = rng.randint(1, VOCABULARY, size=(count, LENGTH)).astype(np.int32)
    lengths = rng.randint(LENGTH // 2, LENGTH + 1, size=count)
    mask = (np.arange(LENGTH)[None, :] < lengths[:, None]).astype(np.int32)
    return {"ids": ids * mask, "mask": mask}, (ids[:, 0] % CLASSES).astype(np.int32)


def with_layers(name: str, layers: int) -> types.SimpleNamespace:
    """A deeper encoder, whose start takes longer than many of its steps."""
    return types.SimpleNamespace(
        NAME=name,
        OPTIMIZER=OPTIMIZER,
        BATCH=BATCH,
        examples=examples,
        logits=functools.partial(logits, layers=layers),
    )


def _dense(get: Any, x: tf.Tensor, units: int, name: str) -> tf.Tensor:
    width = x.shape[-1]
    flat = tf.matmul(tf.reshape(x, [-1, width]), get(f"{name}/kernel", (width, units), 0.02))
    flat = tf.nn.bias_add(flat, get(f"{name}/bias", (units,), "zeros"))
    return tf.reshape(flat, [*x.shape[:-1], units])


def _norm(get: Any, x: tf.Tensor, name: str) -> tf.Tensor:
    scale = get(f"{name}/gamma", (x.shape[-1],), "ones")
    shift = get(f"{name}/beta", (x.shape[-1],), "zeros")
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-6)


def _gelu(x: tf.Tensor) -> tf.Tensor:
    return x * 0.5 * (1.0 + tf.math.erf(x / 1.4142135))


def _heads(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tf.reshape(x, [-1, LENGTH, HEADS, HIDDEN // HEADS]), [0, 2, 1, 3])


def _attention(get: Any, x: tf.Tensor, bias: tf.Tensor, name: str) -> tf.Tensor:
    query, key, value = (
        _heads(_dense(get, x, HIDDEN, f"{name}/{part}")) for part in ("query", "key", "value")
    )
    scores = tf.matmul(query, key, transpose_b=True) / float(HIDDEN // HEADS) ** 0.5 + bias
    context = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    return _dense(get, tf.reshape(context, [-1, LENGTH, HIDDEN]), HIDDEN, f"{name}/output")


def logits(get: Any, features: Any, layers: int = LAYERS) -> tf.Tensor:
    table = get("embeddings/words", (VOCABULARY, HIDDEN), 0.02)
    places = get("embeddings/positions", (LENGTH, HIDDEN), 0.02)
    x = _norm(get, tf.nn.embedding_lookup(table, features["ids"]) + places, "embeddings/norm")
    bias = (1.0 - tf.cast(features["mask"], tf.float32)[:, None, None, :]) * -10000.0
    for i in range(layers):
        layer = f"layer_{i}"
        x = _norm(get, x + _attention(get, x, bias, f"{layer}/attention"), f"{layer}/norm_0")
        inner = _gelu(_dense(get, x, 4 * HIDDEN, f"{layer}/intermediate"))
        x = _norm(get, x + _dense(get, inner, HIDDEN, f"{layer}/output"), f"{layer}/norm_1")
    pooled = tf.tanh(_dense(get, x[:, 0, :], HIDDEN, "pooler"))
    return _dense(get, pooled, CLASSES, "classifier")
