"""`tf.contrib.layers`: the layers of tf_slim, with embeddings and feature columns."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib import slim
from tpu_estimator_compat.old_names.contrib.feature_columns import *  # noqa: F403
from tpu_estimator_compat.old_names.contrib.slim.layers import *  # noqa: F403
from tpu_estimator_compat.old_names.contrib.slim.layers import summaries as summaries

# Names of `tf.contrib.layers` that are TensorFlow's own.
feature_column = tf.feature_column

safe_embedding_lookup_sparse = tf.nn.safe_embedding_lookup_sparse


def embedding_lookup_unique(
    params: Any, ids: tf.Tensor, partition_strategy: str = "mod", name: str | None = None
) -> tf.Tensor:
    """`tf.nn.embedding_lookup` that looks each distinct id up once."""
    with tf.name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = tf.convert_to_tensor(ids)
        unique_ids, places = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.nn.embedding_lookup(params, unique_ids, partition_strategy)
        gathered = tf.gather(rows, places)
        result = tf.reshape(gathered, tf.concat([tf.shape(ids), tf.shape(rows)[1:]], 0))
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result


def embed_sequence(
    ids: tf.Tensor,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> tf.Tensor:
    """Embeddings [batch, length, embed_dim] of ids, from `EmbedSequence/embeddings`."""
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got "
            f"vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if vocab_size and embed_dim else None
        embeddings = slim.model_variable(
            "embeddings",
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        lookup = embedding_lookup_unique if unique else tf.nn.embedding_lookup
        return lookup(embeddings, ids)
